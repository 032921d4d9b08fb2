/** Work of each node on its own state, for its own admin panel and for that of the other nodes. */
import type { Administration } from '../../actors/runtime/administration.ts';
import { ownText } from '../../actors/runtime/journal/own-strings.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import type { Fault } from '../../domain/schema.ts';
import type { Clock } from '../../domain/time.ts';
import type { Catalog } from '../mcp/catalog.ts';
import { textOf } from '../verb-arguments.ts';
import type { Dashboard } from './dashboard.ts';
import type { Figures } from './figures.ts';
import { type History, type HistoryPart, type HistoryRange, RANGE_NAMES } from './history/history.ts';
import type { NodeModule } from './modules.ts';
import type { SetupLinks } from './staff.ts';

/** Reads the configuration file again. Without faults the new catalog is served, otherwise the current one stays. */
export type Reload = () => readonly Fault[];

/** An actor that failed lately. */
export interface FailingActor {
  readonly kind: string;
  readonly id: string;
  readonly quarantined: boolean;
  readonly failures: number;
}

/** `faults`: none where the new catalog is served. The counts are of what is served now. */
export interface ReloadOutcome {
  readonly faults: readonly Fault[];
  readonly tools: number;
  readonly resources: number;
}

/** A webhook that does not work now. */
export interface TroubledWebhook {
  readonly appId: string;
  readonly state: 'failing' | 'disabled';
  readonly sinceMs: number;
  /** `host:port` of the receiver. */
  readonly host: string;
}

/** Facts about this node that may need a person. */
export interface NodeTroubles {
  /** Webhooks of applications that it delivers to; a part of them where there are many. */
  readonly webhooks: readonly TroubledWebhook[];
  readonly breakersOpen: readonly string[];
  /** The same as `loopDelayMs` of the history. */
  readonly loopDelayMs: number;
  readonly isWritable: boolean;
  /** Free bytes of the storage of files; null where it does not answer. */
  readonly freeBytes: number | null;
}

/** Arguments and results are plain data: they travel. */
export interface NodeWork {
  failing(): readonly FailingActor[];
  /** False when the actor has no failures here. */
  reset(kind: string, id: string): boolean;
  /**
   * Skips the dead letter of an actor that this node owns; resolves when that is written. False when it has no message.
   */
  skip(kind: string, id: string): Promise<boolean>;
  reload(): ReloadOutcome;
  /** Returns the figures since the node of that name asked before. */
  figures(asker: string): Figures;
  history(range: HistoryRange): HistoryPart;
  troubles(): Promise<NodeTroubles>;
  modules(): readonly NodeModule[];
  /** Uses the link like `use` of `SetupLinks`. Throws `SetupLinkOver`, also for the link of another node. */
  useLink(token: string, uses: boolean): boolean;
  endSetup(): void;
}

interface WorkDeps {
  readonly administration: Administration;
  readonly dashboard: Dashboard;
  readonly history: Pick<History, 'read'>;
  readonly setupLinks: SetupLinks;
  readonly catalog: { readonly current: Pick<Catalog, 'tools' | 'resources'> };
  readonly reload: Reload;
  readonly troubles: () => Promise<NodeTroubles>;
  readonly modules: () => readonly NodeModule[];
  readonly clock: Clock;
}

export function createNodeWork(deps: WorkDeps): NodeWork {
  const { administration, dashboard, history, setupLinks, catalog, clock } = deps;
  return {
    failing: () =>
      administration
        .failing()
        .map(({ kind, id, quarantined, failures }) => ({ kind, id, quarantined, failures })),
    reset: (kind, id) => administration.reset(kind, id),
    async skip(kind, id) {
      const skipped = administration.skipNext(kind, id);
      // Written after the dead letter, so that is there when this is.
      if (skipped) await administration.write([], 0);
      return skipped;
    },
    reload() {
      const faults = deps.reload();
      const { tools, resources } = catalog.current;
      return { faults, tools: tools.size, resources: resources.size };
    },
    figures: (asker) => dashboard.figuresFor(asker, clock()),
    history: (range) => history.read(range),
    troubles: () => deps.troubles(),
    modules: () => deps.modules(),
    useLink: (token, uses) => setupLinks.use(token, uses, clock()),
    endSetup: () => setupLinks.endSetup(),
  };
}

export const NODE_VERBS = [
  'failing',
  'reset',
  'skip',
  'reload',
  'figures',
  'history',
  'troubles',
  'modules',
  'useLink',
  'endSetup',
] as const satisfies readonly (keyof NodeWork)[];

type NodeVerbs = Record<(typeof NODE_VERBS)[number], (...args: readonly unknown[]) => unknown>;

/** Verbs that other nodes may call. Each throws TypeError for arguments that no node of this version sends. */
export function nodeVerbs(work: NodeWork, owns: (kind: string, id: string) => boolean): NodeVerbs {
  return {
    failing: () => work.failing(),
    reset: (kind, id) => work.reset(ownTextOf(kind), ownTextOf(id)),
    skip(kind, id) {
      if (!owns(ownTextOf(kind), ownTextOf(id))) throw new NotOwner();
      return work.skip(ownTextOf(kind), ownTextOf(id));
    },
    reload: () => work.reload(),
    figures: (asker) => work.figures(ownTextOf(asker)),
    history: (range) => work.history(rangeOf(range)),
    troubles: () => work.troubles(),
    modules: () => work.modules(),
    useLink: (token, uses) => work.useLink(ownTextOf(token), uses === true),
    endSetup() {
      work.endSetup();
      return null;
    },
  };
}

function rangeOf(value: unknown): HistoryRange {
  const range = RANGE_NAMES.find((name) => name === value);
  if (range === undefined) throw new TypeError('no range of the history');
  return range;
}

/** It does not keep the frame that it came in. */
function ownTextOf(value: unknown): string {
  return ownText(textOf(value));
}
