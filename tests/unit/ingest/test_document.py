"""Documents cross the wire under the names of the API (N4)."""

from __future__ import annotations

from windrow.ingest.document import ChangeTracking, Document, Metadata


def test_n4_what_is_absent_is_left_out_and_what_is_required_is_there() -> None:
    wire = Document(metadata=Metadata(status_code=200), markdown="# Hello").to_wire()

    assert wire == {"markdown": "# Hello", "metadata": {"statusCode": 200, "proxyUsed": "basic"}}


def test_n4_other_meta_names_lie_beside_the_known_and_never_over_them() -> None:
    metadata = Metadata(
        status_code=404,
        source_url="https://example.org/",
        others={"viewport": "width=1", "statusCode": "200", "others": "too"},
    )
    wire = Document(metadata=metadata).to_wire()

    assert wire["metadata"] == {
        "viewport": "width=1",
        "others": "too",
        "statusCode": 404,
        "proxyUsed": "basic",
        "sourceURL": "https://example.org/",
    }


def test_n4_a_document_comes_back_from_the_wire_as_it_was() -> None:
    document = Document(
        metadata=Metadata(status_code=200, og_locale_alternate=["de"], others={"author": "A"}),
        links=["https://example.org/"],
        change_tracking=ChangeTracking(
            previous_scrape_at=None, change_status="new", visibility="visible"
        ),
    )
    wire = document.to_wire()

    assert wire["changeTracking"]["previousScrapeAt"] is None
    assert Document.from_wire(wire) == document


def test_warnings_are_added_to_those_there_are() -> None:
    document = Document(metadata=Metadata(status_code=200))
    document.warn("One.")
    document.warn("Two.")

    assert document.warning == "One. Two."
