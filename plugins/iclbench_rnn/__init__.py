"""Recurrent networks: LSTM and GRU."""

from iclbench import Entry, hookimpl


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide lstm and gru."""
    return [
        Entry(
            "lstm",
            "stacked LSTM (Hochreiter and Schmidhuber 1997), computed as torch.nn.LSTM",
            "iclbench_rnn.architecture:LSTM",
        ),
        Entry(
            "gru",
            "stacked GRU (Cho et al. 2014), computed as torch.nn.GRU",
            "iclbench_rnn.architecture:GRU",
        ),
    ]
