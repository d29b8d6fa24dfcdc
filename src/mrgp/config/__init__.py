"""Configurations: what one may say, how one is checked, and what the names in it mean.

`names` is light; `schema` and `checking` load pydantic, which `import mrgp` must not.
"""
