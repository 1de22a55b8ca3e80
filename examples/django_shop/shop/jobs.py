"""The handlers: `manage.py windrow_worker` finds them because the module is called `jobs`."""

from __future__ import annotations

from dataclasses import dataclass

from shop.models import Invoice, Order
from windrow import Job, handler


@dataclass
class ToInvoice:
    order: int


@handler("invoice")
def invoice(job: Job, payload: ToInvoice) -> str:
    """A plain function with the ORM: it runs in a thread. It may run twice, so it asks first."""
    order = Order.objects.get(pk=payload.order)
    text = f"{order.customer} owes {order.cents / 100:.2f}"
    Invoice.objects.get_or_create(order=order, defaults={"text": text})
    return text


@handler("thank")
async def thank(job: Job, payload: dict[str, str]) -> str:
    orders = await Order.objects.filter(customer=payload["customer"]).acount()
    return f"thank you for {orders} orders, {payload['customer']}"
