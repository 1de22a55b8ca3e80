// A button with `data-copy` puts what stands in that field on the clipboard; where that is not allowed, it is selected.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const field = document.getElementById(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
  } catch { button.textContent = "Selected: copy it"; }
});
