"""How such a project tests its jobs. `python manage.py test`"""

from __future__ import annotations

from django.db import transaction
from django.test import TestCase, TransactionTestCase

from shop.jobs import ToInvoice, invoice
from shop.models import Invoice, Order
from windrow.errors import PayloadMismatch
from windrow.integrations.django import (
    close_queue,
    enqueue,
    enqueue_on_commit,
    get_queue,
    project_handlers,
)
from windrow.testing import assert_enqueued, assert_not_enqueued, drain

# The test database cannot be dropped while the queue has it open.
tearDownModule = close_queue


class PlacingOrders(TransactionTestCase):
    """The worker is another connection: it sees what was committed."""

    def setUp(self) -> None:
        get_queue().delete_all()

    def test_an_order_is_invoiced(self) -> None:
        answer = self.client.post("/orders/", {"customer": "Ada", "cents": 1200})
        self.assertEqual(answer.status_code, 201)
        queue = get_queue()
        queue.run(assert_enqueued, "invoice", {"order": answer.json()["order"]})
        jobs = queue.run(drain, project_handlers(), raise_errors=True)
        self.assertEqual(
            sorted(job.result for job in jobs), ["Ada owes 12.00", "thank you for 1 orders, Ada"]
        )
        self.assertEqual(Invoice.objects.get().order.customer, "Ada")

    def test_an_order_that_is_rolled_back_leaves_no_job(self) -> None:
        answer = self.client.post("/orders/", {"customer": "Bob", "cents": 0})
        self.assertEqual(answer.status_code, 400)
        self.assertEqual(Order.objects.count(), 0)
        get_queue().run(assert_not_enqueued)

    def test_a_wrong_payload_is_refused_before_the_commit(self) -> None:
        with transaction.atomic():
            with self.assertRaisesMessage(PayloadMismatch, "$.order"):
                enqueue(invoice, ToInvoice(order="1"))
            with self.assertRaisesMessage(PayloadMismatch, "$.order"):
                enqueue_on_commit(invoice, ToInvoice(order="1"))
        get_queue().run(assert_not_enqueued)

    def test_a_savepoint_that_is_rolled_back_takes_its_job_along(self) -> None:
        with transaction.atomic():
            enqueue("thank", {"customer": "Ada"})
            with self.assertRaises(ZeroDivisionError), transaction.atomic():
                enqueue("thank", {"customer": "Bob"})
                _ = 1 / 0
        [job] = get_queue().run(assert_enqueued, "thank", count=1)
        self.assertEqual(job.payload, {"customer": "Ada"})


class InsideATransaction(TestCase):
    """Each test is a transaction that is rolled back, and the jobs with it."""

    def test_the_view_answers_with_its_job(self) -> None:
        with self.captureOnCommitCallbacks() as after_commit:
            answer = self.client.post("/orders/", {"customer": "Grace", "cents": 350})
        self.assertEqual(answer.status_code, 201)
        self.assertEqual(len(after_commit), 1)
        get_queue().run(assert_not_enqueued, "invoice", {"order": answer.json()["order"]})
