/**
 * THE table of what needs a person, the worst first: each row finds its cases in the facts, and says on which page of the
 * panel they are handled.
 */
import { DAY_MS } from '../../domain/time.ts';
import { BREAKER_OPEN_MS } from '../http-client/breaker.ts';
import { isKeyOld, type KnownModule } from './modules.ts';
import type { NodeTroubles } from './node-work.ts';

const CASES_MAX = 20;
/** Free space of the storage below which uploads are about to be refused. */
const FREE_LOW_BYTES = 1024 ** 3;
/** Delay of the event loop that callers notice. */
const LATE_LOOP_MS = 200;
/** Rows of the log that a node of a cluster may be behind. */
const LAG_ROWS_MAX = 1_000;

export interface AttentionFacts {
  /** Troubles of each node; without `Cluster` one node without a name. */
  readonly nodes: readonly { readonly name: string | null; readonly value: NodeTroubles }[];
  /** Names of applications by id: of those whose webhook fails. */
  readonly appNames: ReadonlyMap<string, string>;
  readonly failingActors: number;
  readonly deadLetters: number;
  readonly auditDropped: number;
  readonly reports: readonly { readonly name: string; readonly state: string; readonly lag: number }[];
  /** Keys of the only admin; undefined where there are several, or a key of the configuration. */
  readonly keysOfOnlyAdmin: { readonly userId: string; readonly keys: number } | undefined;
  readonly toolsWaiting: number;
  readonly appsWaiting: number;
  readonly moduleKeys: readonly Pick<KnownModule, 'name' | 'keySinceMs'>[];
  readonly nowMs: number;
}

interface Case {
  readonly title: string;
  readonly detail: string;
  /** Query of the page. */
  readonly query?: string;
}

interface AttentionRow {
  readonly kind: string;
  readonly level: 'bad' | 'warn';
  /** Page of the panel, with the word of its link. */
  readonly page: string;
  readonly link: string;
  readonly find: (facts: AttentionFacts) => readonly Case[];
}

export interface AttentionItem extends Omit<Case, 'query'> {
  readonly kind: string;
  readonly level: AttentionRow['level'];
  readonly link: string;
  /** Path below the origin. */
  readonly href: string;
}

const counted = (count: number, one: string, several: string) => `${count} ${count === 1 ? one : several}`;
const at = (name: string | null) => (name === null ? '' : ` of node ${name}`);
const minutes = (ms: number) => counted(Math.max(1, Math.round(ms / 60_000)), 'minute', 'minutes');
const when = (holds: boolean, found: () => Case): readonly Case[] => (holds ? [found()] : []);

export const ATTENTION_ROWS: readonly AttentionRow[] = [
  {
    kind: 'storage',
    level: 'bad',
    page: 'Health',
    link: 'Health',
    find: ({ nodes }) =>
      nodes
        .filter(({ value }) => !value.isWritable)
        .map(({ name }) => ({
          title: `The journal${at(name)} takes no writes`,
          detail: 'Requests that change something are refused.',
        })),
  },
  {
    kind: 'disk',
    level: 'bad',
    page: 'Health',
    link: 'Health',
    find: ({ nodes }) =>
      nodes.flatMap(({ name, value: { freeBytes } }) =>
        freeBytes === null || freeBytes >= FREE_LOW_BYTES
          ? []
          : [
              {
                title: `The storage of files${at(name)} is nearly full`,
                detail: `${Math.round(freeBytes / 1024 ** 2)} MiB are free for uploads.`,
              },
            ],
      ),
  },
  {
    kind: 'webhook',
    level: 'bad',
    page: 'Apps',
    link: 'Deliveries',
    find: ({ nodes, appNames, nowMs }) =>
      nodes
        .flatMap(({ value }) => value.webhooks)
        .map(({ appId, state, sinceMs, host }) => ({
          title: `Webhook of ${appNames.get(appId) ?? `application …${appId.slice(-4)}`} ${state === 'failing' ? 'fails' : 'is disabled'}`,
          detail: `${host}, for ${minutes(nowMs - sinceMs)}. Events wait.`,
          query: `deliveries=${appId}`,
        })),
  },
  {
    kind: 'breaker',
    level: 'bad',
    page: 'Modules',
    link: 'Modules',
    find: ({ nodes }) =>
      nodes.flatMap(({ name, value }) =>
        value.breakersOpen.map((endpoint) => ({
          title: `Breaker open: ${endpoint}`,
          detail: `Calls${at(name)} are refused. A probe follows within ${BREAKER_OPEN_MS / 1000} s.`,
        })),
      ),
  },
  {
    kind: 'actors',
    level: 'bad',
    page: 'Actors',
    link: 'Actors',
    find: ({ failingActors }) =>
      when(failingActors > 0, () => ({
        title: counted(failingActors, 'actor fails', 'actors fail'),
        detail: 'Their accounts or applications answer 503 while they are in quarantine.',
      })),
  },
  {
    kind: 'deadLetters',
    level: 'warn',
    page: 'Actors',
    link: 'Dead letters',
    find: ({ deadLetters }) =>
      when(deadLetters > 0, () => ({
        title: counted(deadLetters, 'dead letter', 'dead letters'),
        detail: 'Messages that failed three times. What they would have changed has not happened.',
      })),
  },
  {
    kind: 'auditDropped',
    level: 'bad',
    page: 'Health',
    link: 'Health',
    find: ({ auditDropped }) =>
      when(auditDropped > 0, () => ({
        title: `${counted(auditDropped, 'audit record was', 'audit records were')} dropped`,
        detail: 'Since the start of the process: the journal was behind.',
      })),
  },
  {
    kind: 'lag',
    level: 'warn',
    page: 'Dashboard',
    link: 'Figures',
    find: ({ nodes }) =>
      nodes
        .filter(({ value }) => value.loopDelayMs >= LATE_LOOP_MS)
        .map(({ name, value }) => ({
          title: `The event loop${at(name)} is late`,
          detail: `${Math.round(value.loopDelayMs)} ms, several times in five minutes.`,
        })),
  },
  {
    kind: 'node',
    level: 'bad',
    page: 'Nodes',
    link: 'Nodes',
    find: ({ reports }) =>
      reports
        .filter(({ state, lag }) => state === 'late' || (state === 'joined' && lag > LAG_ROWS_MAX))
        .map(({ name, state, lag }) => ({
          title: `Node ${name} ${state === 'late' ? 'has not renewed its lease' : 'is behind'}`,
          detail: `${counted(lag, 'row', 'rows')} of the log not applied.`,
        })),
  },
  {
    kind: 'onlyAdmin',
    level: 'warn',
    page: 'Account',
    link: 'Account',
    find: ({ keysOfOnlyAdmin: only }) =>
      only === undefined || only.keys > 1
        ? []
        : [
            {
              title: 'One admin with one passkey',
              detail: 'A lost device locks this panel. Add a second passkey, or a second admin.',
              query: `userId=${only.userId}`,
            },
          ],
  },
  {
    kind: 'moduleKey',
    level: 'warn',
    page: 'Modules',
    link: 'Modules',
    find: ({ moduleKeys, nowMs }) =>
      moduleKeys.flatMap(({ name, keySinceMs = nowMs }) =>
        isKeyOld(keySinceMs, nowMs)
          ? [
              {
                title: `The key of module ${name} is old`,
                detail: `It is the same for ${Math.floor((nowMs - keySinceMs) / DAY_MS)} days. Give the module and the gateway another one.`,
              },
            ]
          : [],
      ),
  },
  {
    kind: 'toolsWaiting',
    level: 'warn',
    page: 'Tools',
    link: 'Tools',
    find: ({ toolsWaiting }) =>
      when(toolsWaiting > 0, () => ({
        title: `${counted(toolsWaiting, 'tool of another server waits', 'tools of other servers wait')} for an approval`,
        detail: 'Definitions that are new or changed are not served.',
      })),
  },
  {
    kind: 'appsWaiting',
    level: 'warn',
    page: 'Apps',
    link: 'Applications',
    find: ({ appsWaiting }) =>
      when(appsWaiting > 0, () => ({
        title: `${counted(appsWaiting, 'application waits', 'applications wait')} for an approval`,
        detail: 'Without it no other account can use them.',
      })),
  },
];

/** Returns the items in the order of the table, the bad ones first. */
export function attentionOf(facts: AttentionFacts): AttentionItem[] {
  const all = ATTENTION_ROWS.flatMap(({ kind, level, page, link, find }) =>
    find(facts)
      .slice(0, CASES_MAX)
      .map(({ title, detail, query }) => ({
        ...{ kind, level, title, detail, link },
        href: `/ProxyAdmin/${page}${query === undefined ? '' : `?${query}`}`,
      })),
  );
  return [...all.filter(({ level }) => level === 'bad'), ...all.filter(({ level }) => level === 'warn')];
}
