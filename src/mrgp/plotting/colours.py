"""Colours that suit colour-blind readers."""

FIELD_COLOURS = "viridis"
SPREAD_COLOURS = "cividis"
LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
MODEL_COLOURS = ("#000000", *LINE_COLOURS, "#56B4E9", "#E69F00")
