/**
 * The nodes of a cluster as the admin panel reaches them: work on what one node alone holds is done there, here or over a
 * link. A gateway without `Cluster` is one node without a name.
 */
import { ownerUnavailable } from '../../actors/routed-system.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { NodeReport } from '../cluster/node-report.ts';
import { ALL_NODES, type FigureNodes } from './dashboard.ts';
import type { Figures } from './figures.ts';
import type { HistoryRange } from './history/history.ts';
import type { FailingActor, NodeWork, ReloadOutcome } from './node-work.ts';

type Verb = keyof NodeWork;
type Result<V extends Verb> = Awaited<ReturnType<NodeWork[V]>>;

/** The place of this node among others. */
export interface NodeLinks {
  readonly name: string;
  /** Names of the other nodes that are in. */
  others(): readonly string[];
  /** Every node that has a number. Rejects with a row of the error table. */
  report(): Promise<readonly NodeReport[]>;
  /** Calls a verb of another node. Rejects with a row of the error table. */
  call(name: string, verb: string, ...args: readonly unknown[]): Promise<unknown>;
  /** Runs `here` where this node owns the actor, otherwise calls the verb of the owner with kind and id. */
  atOwner(kind: string, id: string, here: () => Promise<unknown>, verb: string): Promise<unknown>;
}

/** Answers of nodes, each with its name: null without `Cluster`. */
interface Answers<V extends Verb> {
  readonly answers: readonly { readonly name: string | null; readonly value: Result<V> }[];
  /** Names of the nodes that did not answer. */
  readonly missing: readonly string[];
}

interface Failing {
  readonly failing: readonly (FailingActor & { readonly node: string | null })[];
  readonly missing: readonly string[];
}

interface Reloaded {
  readonly own: ReloadOutcome;
  readonly others: Answers<'reload'>;
}

export class AdminNodes implements FigureNodes {
  readonly #work: NodeWork;
  readonly #links: NodeLinks | undefined;

  constructor(work: NodeWork, links?: NodeLinks) {
    this.#work = work;
    this.#links = links;
  }

  /** Name of this node; '' without `Cluster`. */
  get name(): string {
    return this.#links?.name ?? '';
  }

  others(): readonly string[] {
    return this.#links?.others() ?? [];
  }

  /** Every node that has a number, in or not; none without `Cluster`. */
  async report(): Promise<readonly NodeReport[]> {
    return (await this.#links?.report()) ?? [];
  }

  figures(name: string): Promise<Figures> {
    return this.#call(name, 'figures', this.name);
  }

  /**
   * Asks one node for its history, this one unless named, or all of them. Rejects with `NotFound` for a name that no
   * node has.
   */
  async history(range: HistoryRange, node = this.name): Promise<Answers<'history'>> {
    const here = () => this.#work.history(range);
    if (node === ALL_NODES) return this.#everywhere('history', here, range);
    if (node === this.name)
      return { answers: [{ name: this.#links?.name ?? null, value: here() }], missing: [] };
    if (!this.others().includes(node)) throw new GatewayError('NotFound', 'no such node');
    return this.#at([node], 'history', range);
  }

  /** Asks all nodes. */
  troubles(): Promise<Answers<'troubles'>> {
    return this.#everywhere('troubles', () => this.#work.troubles());
  }

  /** Asks all nodes. */
  modules(): Promise<Answers<'modules'>> {
    return this.#everywhere('modules', () => this.#work.modules());
  }

  async failing(): Promise<Failing> {
    const { answers, missing } = await this.#everywhere('failing', () => this.#work.failing());
    const failing = answers.flatMap(({ name, value }) => value.map((actor) => ({ ...actor, node: name })));
    return { failing, missing };
  }

  /** At every node, since the replica of an actor may fail where its owner does not. False when it failed at none. */
  async reset(kind: string, id: string): Promise<boolean> {
    const here = () => this.#work.reset(kind, id);
    const { answers, missing } = await this.#everywhere('reset', here, kind, id);
    if (answers.some(({ value }) => value)) return true;
    if (missing.length > 0) throw ownerUnavailable();
    return false;
  }

  /** Skips at the owner. False when the actor has no message. */
  async skip(kind: string, id: string): Promise<boolean> {
    const here = () => this.#work.skip(kind, id);
    return (await (this.#links?.atOwner(kind, id, here, 'skip') ?? here())) === true;
  }

  /** Here first: where that is refused, no other node is asked. */
  async reload(): Promise<Reloaded> {
    const own = this.#work.reload();
    const others = own.faults.length > 0 ? { answers: [], missing: [] } : await this.#elsewhere('reload');
    return { own, others };
  }

  /** Uses the link like `use` of `SetupLinks`, at the node that made it. Rejects with `SetupLinkOver`. */
  async useLink(token: string, uses: boolean): Promise<boolean> {
    try {
      return this.#work.useLink(token, uses);
    } catch (error) {
      if (!isOver(error)) throw error;
    }
    const others = this.others().map((name) => this.#call(name, 'useLink', token, uses));
    const asked = await Promise.allSettled(others);
    const used = asked.find((answer) => answer.status === 'fulfilled');
    if (used !== undefined) return used.value;
    // A node that does not answer may be the one that made it.
    if (asked.some((answer) => answer.status === 'rejected' && !isOver(answer.reason)))
      throw ownerUnavailable();
    throw new GatewayError('SetupLinkOver');
  }

  /** There is an admin. A node that does not answer keeps its link, and the roles refuse that. */
  async endSetup(): Promise<void> {
    await this.#everywhere('endSetup', () => this.#work.endSetup());
  }

  async #everywhere<V extends Verb>(
    verb: V,
    here: () => Result<V> | Promise<Result<V>>,
    ...args: Parameters<NodeWork[V]>
  ): Promise<Answers<V>> {
    const own = here();
    const { answers, missing } = await this.#elsewhere(verb, ...args);
    const value = await own;
    return { answers: [{ name: this.#links?.name ?? null, value }, ...answers], missing };
  }

  #elsewhere<V extends Verb>(verb: V, ...args: Parameters<NodeWork[V]>): Promise<Answers<V>> {
    return this.#at(this.others(), verb, ...args);
  }

  async #at<V extends Verb>(
    names: readonly string[],
    verb: V,
    ...args: Parameters<NodeWork[V]>
  ): Promise<Answers<V>> {
    const answers: { name: string; value: Result<V> }[] = [];
    const missing: string[] = [];
    const ask = async (name: string) => {
      try {
        answers.push({ name, value: await this.#call(name, verb, ...args) });
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        missing.push(name);
      }
    };
    await Promise.all(names.map(ask));
    return { answers, missing };
  }

  #call<V extends Verb>(name: string, verb: V, ...args: Parameters<NodeWork[V]>): Promise<Result<V>> {
    if (this.#links === undefined) return Promise.reject(ownerUnavailable());
    return this.#links.call(name, verb, ...args) as Promise<Result<V>>;
  }
}

function isOver(error: unknown): boolean {
  return error instanceof GatewayError && error.row === 'SetupLinkOver';
}
