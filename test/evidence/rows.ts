/** Rows of pages that tests cover: attacks and faults, parts of a cluster's state, public reports, readings and extensions. */
import { readFileSync } from 'node:fs';

export interface Rows {
  /** Text by id. */
  readonly rows: ReadonlyMap<string, string>;
  readonly faults: readonly string[];
}

/** `S17`: letter of its page, and a number that no other row of the page has had. */
const ID = /^[SCPR]\d+$/;

function collect(found: readonly (readonly [id: string, text: string])[]): Rows {
  const rows = new Map<string, string>();
  const faults: string[] = [];
  for (const [id, text] of found) {
    if (!ID.test(id)) faults.push(`${text}: no id`);
    else if (rows.has(id)) faults.push(`${id}: twice`);
    else rows.set(id, text);
  }
  return { rows, faults };
}

/** Rows of all tables whose first column is `Id`. A table without that column, behind `heading`, is a fault. */
export function tableRows(page: string): Rows {
  const tables = page.split(/\n(?!\|)/).filter((table) => /^\n*\|/.test(table));
  const found = tables.flatMap((table) => {
    const [head = '', , ...lines] = table.trim().split('\n');
    return lines.map((line) => {
      const [, first = '', second = ''] = line.split('|').map((cell) => cell.trim());
      return head.startsWith('| Id | ') ? ([first, second] as const) : (['', first] as const);
    });
  });
  return collect(found);
}

/** Quoted paragraphs of numbered sections: `> Reading R7: …`. Empty quoted lines separate paragraphs. */
export function readingRows(page: string): Rows {
  let inSection = false;
  let isOpen = false;
  const paragraphs: string[] = [];
  for (const line of page.split('\n')) {
    inSection ||= /^#{2,3} \d/.test(line);
    const [, text] = /^\s*> (.+)$/.exec(line) ?? [];
    const begins = text !== undefined && inSection && !isOpen;
    if (begins && !text.startsWith('|')) paragraphs.push(text);
    isOpen = text !== undefined && inSection;
  }
  return collect(
    paragraphs.map((text) => {
      const [, id = '', rest = text] = /^(?:Reading|Extension) (R\d+): (.*)$/.exec(text) ?? [];
      return [id, rest];
    }),
  );
}

/** All rows of the pages of this checkout. */
export function pageRows(): Rows {
  const [, state = ''] =
    /^## Parts of the state\n([\s\S]*?)^## /m.exec(readFileSync('docs/cluster.md', 'utf8')) ?? [];
  const parts = [
    tableRows(readFileSync('docs/SECURITY.md', 'utf8')),
    tableRows(state),
    tableRows(readFileSync('docs/public-reports.md', 'utf8')),
    readingRows(readFileSync('docs/specification.md', 'utf8')),
  ];
  return {
    rows: new Map(parts.flatMap(({ rows }) => [...rows])),
    faults: parts.flatMap(({ faults }) => faults),
  };
}
