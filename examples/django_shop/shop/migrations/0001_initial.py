from __future__ import annotations

from django.db import migrations, models
from django.db.models.deletion import CASCADE


class Migration(migrations.Migration):
    initial = True
    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("customer", models.CharField(max_length=100)),
                ("cents", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            "Invoice",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("order", models.OneToOneField(to="shop.order", on_delete=CASCADE)),
                ("text", models.TextField()),
            ],
        ),
    )
