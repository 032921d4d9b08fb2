/** The table that `npm run cluster` prints: each node, its process, and what it owns. */
import { SETTINGS_ID, settings } from '../../src/actors/admin/settings.ts';
import { STAFF_ID, staff } from '../../src/actors/admin/staff.ts';
import { homeOf, ownersOf } from '../../src/domain/partitions.ts';
import type { NodeRecord } from '../../src/io/cluster/node-table.ts';
import type { Condition } from './balancer.ts';

/** Actors that a cluster has once, by kind and id. */
const SINGLE = [
  { kind: settings.kind, id: SETTINGS_ID },
  { kind: staff.kind, id: STAFF_ID },
];

export interface NodeRow {
  readonly name: string;
  readonly url: string;
  /** Undefined once the process has ended. */
  readonly pid: number | undefined;
  readonly isStopped: boolean;
  readonly condition: Condition;
}

const HEADINGS = ['node', 'process', 'state', 'partitions', 'also owns', 'address'];

/** `records`: the nodes as the database has them. */
export function ownersTable(nodes: readonly NodeRow[], records: readonly NodeRecord[]): string {
  const joined = records.filter((each) => each.joined);
  const owners = ownersOf(joined.map((each) => each.node));
  const rows = nodes.map(({ name, url, pid, isStopped, condition }) => {
    const record = joined.find((each) => each.name === name);
    const number = record?.node;
    const partitions = owners.reduce((count, owner) => count + (owner === number ? 1 : 0), 0);
    const also = SINGLE.filter(({ kind, id }) => number !== undefined && owners[homeOf(kind, id)] === number);
    return [
      name,
      pid === undefined ? 'ended' : String(pid),
      stateOf(record !== undefined, isStopped, condition),
      `${partitions} of ${owners.length}`,
      also.map(({ kind }) => kind).join(', '),
      url,
    ];
  });
  const widths = HEADINGS.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd();
  return `${[HEADINGS, ...rows].map(line).join('\n')}\n`;
}

function stateOf(isIn: boolean, isStopped: boolean, condition: Condition): string {
  const place = isIn ? 'in' : 'out';
  if (isStopped) return `${place}, stopped`;
  return isIn && condition !== 'healthy' ? `${place}, ${condition}` : place;
}
