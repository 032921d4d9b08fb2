/**
 * Requests of the clients of a faulty cluster. A node may be gone, stopped or without a lease: then there is no verdict,
 * and a write may have happened. Any other answer must be the right one.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type Answer, request } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { FaultHistory } from './history.ts';

/** A client gives up after so long, and asks another node. */
const TIMEOUT_MS = 1_000;
const RETRY_MS = 100;
/** Without an answer for so long the service is not back. */
export const GIVE_UP_MS = 40_000;
const UNAVAILABLE = 503;
/** Status of a write to something that an earlier write made: the node does not know that write. */
const NOT_FOUND = 404;
/** Code of an answer to a session that is closed, or a key that no account has. */
const SESSION_NOT_FOUND = '1101';
/** Public text of an answer that is kept in the history. */
const TEXT_MAX = 120;

/** A promise of the cluster does not hold. */
export class BrokenPromise extends Error {
  readonly who: string;

  constructor(who: string, text: string) {
    super(`${who}: ${text}`);
    this.name = 'BrokenPromise';
    this.who = who;
  }
}

export interface CallCounts {
  /** Writes that were answered with 200. */
  acknowledged: number;
  /** Requests without a verdict: no answer, or 503. */
  unanswered: number;
  /** Read-backs with a verdict. */
  checked: number;
  /** Read-backs at a node that gave none. */
  unchecked: number;
  /** Answers with the state before an acknowledged write. */
  stale: number;
}

export interface NodeRequest {
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly method?: string;
  /** For requests that a stopped node finds when it continues. */
  readonly timeoutMs?: number;
}

/** Statuses that keep the promise. */
export interface Expected {
  /** Default: 200. */
  readonly statuses?: readonly number[];
  /** Statuses of a repeat, where the answer before it was lost. It acknowledges nothing. */
  readonly afterLost?: readonly number[];
}

/** Says what is wrong with an answer; undefined when it is right. */
export type Judge = (answer: Answer) => string | undefined;

export class NodeCalls {
  readonly #nodes: readonly NodeProcess[];
  readonly #history: FaultHistory;
  readonly counts: CallCounts = { acknowledged: 0, unanswered: 0, checked: 0, unchecked: 0, stale: 0 };

  constructor(nodes: readonly NodeProcess[], history: FaultHistory) {
    this.#nodes = nodes;
    this.#history = history;
  }

  get nodes(): readonly NodeProcess[] {
    return this.#nodes;
  }

  /** Any of them, also one that has a fault. */
  pick(random: () => number, among: readonly NodeProcess[] = this.#nodes): NodeProcess {
    const node = among[Math.floor(random() * among.length)];
    if (node === undefined) throw new Error('no node to choose from');
    return node;
  }

  /** Undefined without a verdict. */
  async call(who: string, node: NodeProcess, asked: NodeRequest): Promise<Answer | undefined> {
    const answer = await request(node.url + asked.path, { timeoutMs: TIMEOUT_MS, ...asked }).catch(
      () => undefined,
    );
    const shown = answer === undefined ? 'no answer' : `${answer.status} ${textOf(answer)}`;
    this.#history.add(who, `${asked.method ?? ''}${asked.path} at ${node.name}: ${shown}`);
    if (answer !== undefined && answer.status < 500) return answer;
    if (answer !== undefined && answer.status !== UNAVAILABLE)
      throw new BrokenPromise(who, `${asked.path} at ${node.name}: ${shown}`);
    this.counts.unanswered += 1;
    return undefined;
  }

  /** Asks one node after the other until `attempt` has a result. */
  async until<Result>(
    who: string,
    random: () => number,
    attempt: (node: NodeProcess) => Promise<Result | undefined>,
  ): Promise<Result> {
    const endMs = performance.now() + GIVE_UP_MS;
    while (performance.now() < endMs) {
      const result = await attempt(this.pick(random));
      if (result !== undefined) return result;
      await wait(RETRY_MS);
    }
    throw new BrokenPromise(who, `no node has answered for ${GIVE_UP_MS} ms`);
  }

  /** The same request until it is answered: it must take effect once. */
  async write(
    who: string,
    random: () => number,
    asked: NodeRequest,
    { statuses = [200], afterLost = [] }: Expected = {},
  ): Promise<Answer> {
    let isRepeated = false;
    const answer = await this.until(who, random, async (node) => {
      const answered = await this.call(who, node, asked);
      if (answered?.json['error']?.['code']?.toString() === SESSION_NOT_FOUND)
        throw this.stale(who, node, 'a live session is refused', answered);
      if (answered?.status === NOT_FOUND)
        throw this.stale(who, node, 'what was acknowledged is not there', answered);
      isRepeated ||= answered === undefined;
      return answered;
    });
    if (isRepeated && afterLost.includes(answer.status)) return answer;
    if (!statuses.includes(answer.status))
      throw new BrokenPromise(who, `${asked.path}: ${answer.status} ${answer.text}`);
    this.counts.acknowledged += 1;
    return answer;
  }

  /** After an acknowledged write: a node that gives a verdict must know of it. */
  async readBack(who: string, node: NodeProcess, asked: NodeRequest, judge: Judge): Promise<void> {
    const answer = await this.call(who, node, asked);
    if (answer === undefined) {
      this.counts.unchecked += 1;
      return;
    }
    this.counts.checked += 1;
    const wrong = judge(answer);
    if (wrong === undefined) return;
    throw this.stale(who, node, wrong, answer);
  }

  stale(who: string, node: NodeProcess, wrong: string, answer: Answer): BrokenPromise {
    this.counts.stale += 1;
    return new BrokenPromise(who, `stale at ${node.name}: ${wrong} (${answer.status} ${textOf(answer)})`);
  }
}

/** Without the tokens and keys that come after the first words. */
function textOf({ text, json }: Answer): string {
  const { error } = json;
  return (error === undefined ? text : JSON.stringify(error)).slice(0, TEXT_MAX);
}
