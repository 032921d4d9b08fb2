/**
 * Nodes of a cluster over the log in memory, with stores that only keep the rows and the members. The test moves the
 * clock, holds and loses calls, and cuts links.
 */
import { type MemberChange, Members } from '../../../src/actors/runtime/log/members.ts';
import {
  type MemoryCall,
  MemoryLog,
  type MemoryLogClient,
} from '../../../src/actors/runtime/log/memory-log.ts';
import { LogNode } from '../../../src/actors/runtime/log/node.ts';
import type {
  DigestSample,
  Diverged,
  LogRow,
  NodeState,
  PeerListener,
  RowName,
} from '../../../src/actors/runtime/log/port.ts';
import type { RowSink } from '../../../src/actors/runtime/log/row-sink.ts';
import { ManualClock } from './actors.ts';

export const LEASE_MS = 1_000;
/** Milliseconds of a step of time: every timer of a node is a multiple of it. */
const STEP_MS = 10;
/** Turns of the event loop that count as rest. */
const ROUNDS_MAX = 2_000;

export const encodeMember = (change: MemberChange): Uint8Array => Buffer.from(JSON.stringify(change));

/** Keeps what it applies. */
export class KeepingSink implements RowSink {
  position = 0;
  readonly members = new Members();
  readonly rows: LogRow[] = [];
  /** While true, rows wait before they become visible. */
  isHeld = false;
  failure: Error | undefined;
  sample: DigestSample | undefined;
  /** What a comparison with the other members says. */
  diverged: Diverged | undefined;
  /** What the last comparison was with. */
  compared: readonly NodeState[] = [];
  #held: (() => void)[] = [];

  get lastRow(): RowName | undefined {
    return this.rows.at(-1);
  }

  compare(others: readonly NodeState[]): Diverged | undefined {
    this.compared = others;
    return this.diverged;
  }

  async apply(rows: readonly LogRow[]): Promise<void> {
    if (this.isHeld) await new Promise<void>((resolve) => this.#held.push(resolve));
    if (this.failure !== undefined) throw this.failure;
    for (const row of rows) {
      if (row.position !== this.position + 1) throw new Error(`${row.position} after ${this.position}`);
      this.position = row.position;
      this.rows.push(row);
      const text = Buffer.from(row.body).toString();
      if (text.startsWith('{'))
        this.members.change(JSON.parse(text), row.node, row.incarnation, row.position);
    }
  }

  release(): void {
    this.isHeld = false;
    for (const resolve of this.#held.splice(0)) resolve();
  }

  /** Bodies of rows that change no members. */
  get texts(): readonly string[] {
    return this.rows.map(({ body }) => Buffer.from(body).toString()).filter((text) => !text.startsWith('{'));
  }
}

export class TestNode {
  readonly name: string;
  readonly sink: KeepingSink;
  readonly client: MemoryLogClient;
  readonly node: LogNode;
  readonly timers: ManualClock;
  readonly fatal: Error[] = [];
  listener: PeerListener | undefined;
  /** Neither timers nor answers nor frames reach the process. */
  isPaused = false;
  /** No frame reaches it, and none leaves. */
  isUnlinked = false;
  /** Difference of its wall clock. Milliseconds. */
  skewMs = 0;
  /** For which its monotonic clock has stood still. Milliseconds. */
  suspendedMs = 0;

  constructor(
    cluster: TestCluster,
    name: string,
    sink: KeepingSink,
    logId: string | undefined,
    firstSeq: number | undefined,
  ) {
    this.name = name;
    this.sink = sink;
    this.timers = new ManualClock(cluster.clock.nowMs);
    this.client = cluster.log.connect();
    this.node = new LogNode({
      log: this.client,
      sink,
      name,
      ...(logId !== undefined && { logId }),
      firstSeq,
      encodeMember,
      leaseMs: LEASE_MS,
      schedule: { immediate: (run) => setImmediate(run), timer: this.timers.timer },
      clock: () => cluster.clock.nowMs + this.skewMs,
      monotonicMs: () => cluster.clock.nowMs - this.suspendedMs,
      onFatal: (error) => this.fatal.push(error),
      peers: (listener) => {
        this.listener = listener;
        return {
          push: (row) => cluster.send(this, (to) => to.onPush(row)),
          applied: (position) => cluster.send(this, (to) => to.onApplied(this.node.node, position)),
        };
      },
    });
  }
}

export class TestCluster {
  readonly clock = new ManualClock();
  readonly log = new MemoryLog({ clock: () => this.clock.nowMs, leaseMs: LEASE_MS });
  readonly nodes: TestNode[] = [];
  /** Calls that stay where they are. */
  holds: (call: MemoryCall) => boolean = () => false;

  /** A process with this store, which follows that life of the log and numbers its rows after `firstSeq`. */
  add(name: string, sink = new KeepingSink(), logId?: string, firstSeq?: number): TestNode {
    const node = new TestNode(this, name, sink, logId, firstSeq);
    this.nodes.push(node);
    return node;
  }

  /** Nodes of these names, which have joined. */
  async start<Names extends readonly string[]>(...names: Names): Promise<{ [K in keyof Names]: TestNode }> {
    const nodes = names.map((name) => this.add(name));
    for (const { node } of nodes) {
      const started = node.start();
      await this.rest();
      await started;
    }
    return nodes as { [K in keyof Names]: TestNode };
  }

  send(from: TestNode, frame: (listener: PeerListener) => void): void {
    for (const to of this.nodes) {
      if (to === from || from.isUnlinked || to.isUnlinked || to.isPaused) continue;
      if (to.listener !== undefined) frame(to.listener);
    }
  }

  /** Ends a process as `kill -9` would. */
  kill(killed: TestNode): void {
    killed.node.stop();
    killed.timers.clear();
    this.log.disconnect(killed.client.client);
    this.nodes.splice(this.nodes.indexOf(killed), 1);
  }

  /** Lets every call through that is not held, until all is at rest. */
  async rest(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const call = this.log.calls.find((each) => !this.#isHeld(each));
      if (call === undefined) return;
      this.log.step(call);
    }
    throw new Error('never comes to rest');
  }

  /** Moves the time; nodes that run fire their timers. */
  async pass(durationMs: number): Promise<void> {
    const endMs = this.clock.nowMs + durationMs;
    await this.rest();
    while (this.clock.nowMs < endMs) {
      this.clock.nowMs = Math.min(endMs, this.clock.nowMs + STEP_MS);
      for (const { timers, isPaused } of this.nodes) {
        if (isPaused) continue;
        while (timers.fireNext(this.clock.nowMs));
        timers.nowMs = this.clock.nowMs;
      }
      await this.rest();
    }
  }

  /** The oldest call of a node by a method. */
  callOf(node: TestNode, method: MemoryCall['method']): MemoryCall {
    const call = this.log.calls.find((each) => each.client === node.client.client && each.method === method);
    if (call === undefined) throw new Error(`no ${method} of ${node.name} waits`);
    return call;
  }

  #isHeld(call: MemoryCall): boolean {
    const of = this.nodes.find(({ client }) => client.client === call.client);
    return (call.executed && of?.isPaused === true) || this.holds(call);
  }
}
