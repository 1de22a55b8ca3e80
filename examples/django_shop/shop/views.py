from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from shop.jobs import ToInvoice, invoice, thank
from shop.models import Order
from windrow.integrations.django import enqueue, enqueue_on_commit


@require_POST
def place_order(request: HttpRequest) -> JsonResponse:
    """The order and its jobs are committed together, or not at all."""
    try:
        with transaction.atomic():
            order = Order.objects.create(
                customer=request.POST["customer"], cents=int(request.POST["cents"])
            )
            job = enqueue(invoice, ToInvoice(order=order.pk))
            # For a queue in another database this would be the way:
            enqueue_on_commit(thank, {"customer": order.customer}, delay=0)
            if order.cents <= 0:
                raise ValueError("nothing was ordered")
    except ValueError as error:
        return JsonResponse({"error": str(error)}, status=400)
    return JsonResponse({"order": order.pk, "job": job.id}, status=201)
