/** Parts of the page that more than one place needs: tables, chips, lists. */
import type { Judged } from '../targets.ts';
import { type Cells, verdictOf } from '../wording.ts';
import { escapeHtml } from './escape.ts';

/** `figures`: all cells but the first are numbers. A cell of `markup` columns is HTML already. */
export function tableOf(
  label: string,
  { headings, rows }: Cells,
  options: { readonly figures?: true; readonly markup?: readonly number[] } = {},
): string {
  if (rows.length === 0) return '';
  const head = headings.map(
    (heading) =>
      `<th scope="col">${heading === '' ? '<span class="soft">subject</span>' : escapeHtml(heading)}</th>`,
  );
  const body = rows.map((row) => {
    const cells = row.map((cell, column) => {
      const title = headings[column] ?? '';
      const content = options.markup?.includes(column) === true ? cell : escapeHtml(cell);
      return column === 0
        ? `<th scope="row">${content}</th>`
        : `<td data-title="${escapeHtml(title)}">${content}</td>`;
    });
    return `<tr>${cells.join('')}</tr>`;
  });
  const style = options.figures === true ? ' class="figures"' : '';
  // A part that scrolls is reached by keyboard only when it takes the focus.
  return `<div class="scroll" role="region" aria-label="${escapeHtml(label)}" tabindex="0"><table${style}><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

export function chip(judged: Judged): string {
  const style =
    judged.verdict === 'not measured' ? '' : judged.withinInterval ? ' doubt' : ` ${judged.verdict}`;
  return `<span class="chip${style}">${escapeHtml(verdictOf(judged))}</span>`;
}

export function list(style: string, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  return `<ul class="${style}">${lines.map((line) => `<li>${escapeHtml(line)}</li>`).join('')}</ul>`;
}
