/** Parts that are folded away on a phone, where they would push the rows below the edge. */
import { Icon } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';

const WIDE = matchMedia('(min-width: 761px)');

/** A filter: open where there is room, else one line that says how many fields are set. */
export function Filters({ kind = '', set, onSubmit, children }) {
  const [open, setOpen] = useState(WIDE.matches);
  useEffect(() => {
    const follow = () => setOpen(WIDE.matches);
    WIDE.addEventListener('change', follow);
    return () => WIDE.removeEventListener('change', follow);
  }, []);
  return html`<details class=${`folded ${kind}`} open=${open} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><${Icon} name="search" />Filter${set > 0 && html` <span class="count">${set}</span>`}</summary>
    <form class="filters" aria-label="Filter" onSubmit=${onSubmit}>${children}</form>
  </details>`;
}
