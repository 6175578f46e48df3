"""What encoding did to a user's rows, in words."""

from __future__ import annotations

from seqtrain.data.encoding import EncodingReport


def encoding_notices(name: str, report: EncodingReport) -> list[str]:
    """Say how many rows were cut, left out, or read though empty; and which labels are unknown."""
    notices = []
    if report.truncated:
        notices.append(f"{name}: {report.truncated} sequences were cut at data.max_length")
    if report.dropped:
        notices.append(f"{name}: {report.dropped} empty sequences were left out")
    if report.filled:
        notices.append(f"{name}: {report.filled} empty sequences are read as one <unk>")
    notices += report.unknown_label_rows
    more = report.unknown_labels - len(report.unknown_label_rows)
    if more:
        notices.append(f"{name}: {more} more rows have labels that train lacks")
    return notices
