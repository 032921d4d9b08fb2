/**
 * Nodes of a simulated cluster with stores that only keep the rows and the members. Nothing happens by chance: the test
 * moves the time, holds and loses calls, and cuts links.
 */

import type { MemoryCall } from '../../../kit/journal/memory-log.ts';
import { type MemberChange, Members } from '../../../src/actors/runtime/replication/members.ts';
import { LogNode } from '../../../src/actors/runtime/replication/node.ts';
import type {
  DigestSample,
  Diverged,
  LogRow,
  NodeState,
  RowName,
} from '../../../src/actors/runtime/replication/port.ts';
import type { RowSink } from '../../../src/actors/runtime/replication/row-sink.ts';
import {
  type Application,
  LEASE_MS,
  type ProcessTools,
  SimulatedCluster,
  type SimulatedProcess,
  settled,
} from './simulated-cluster.ts';

export { LEASE_MS };

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
  /** Result of a comparison with the other members. */
  diverged: Diverged | undefined;
  /** Members of the last comparison. */
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

interface NodeStart {
  readonly sink?: KeepingSink;
  /** Life of the log that the store follows. */
  readonly logId?: string;
  /** Its rows are numbered after that. */
  readonly firstSeq?: number;
}

export class TestNode implements Application {
  readonly name: string;
  /** Names it among the calls of the log. */
  readonly client: number;
  readonly sink: KeepingSink;
  readonly node: LogNode;
  readonly fatal: Error[] = [];

  constructor(tools: ProcessTools, { sink = new KeepingSink(), logId, firstSeq }: NodeStart = {}) {
    this.name = tools.name;
    this.client = tools.client.client;
    this.sink = sink;
    this.node = new LogNode({
      ...tools,
      log: tools.client,
      sink,
      ...(logId !== undefined && { logId }),
      firstSeq,
      encodeMember,
      leaseMs: LEASE_MS,
      onFatal: (error) => {
        this.fatal.push(error);
        tools.onFatal(error);
      },
    });
  }

  leave(): Promise<void> {
    return this.node.leave();
  }

  stop(): void {
    this.node.stop();
  }
}

export class TestCluster extends SimulatedCluster<TestNode> {
  constructor() {
    super({
      random: () => 0,
      isReliable: true,
      start: (tools) => new TestNode(tools),
      onFatal: () => undefined,
      check: () => undefined,
    });
  }

  /** Lets the calls of the test itself begin first. */
  override async rest(): Promise<void> {
    await settled();
    await super.rest();
  }

  /** A process that has not entered. */
  add(name: string, options?: NodeStart): TestNode {
    return this.startProcess(name, (tools) => new TestNode(tools, options)).app;
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

  /** The process of a node that runs. */
  processOf(node: TestNode): SimulatedProcess<TestNode> {
    const process = this.processes.find(({ app }) => app === node);
    if (process === undefined) throw new Error(`${node.name} has ended`);
    return process;
  }

  /** The oldest call of a node by a method. */
  callOf(node: TestNode, method: MemoryCall['method']): MemoryCall {
    const call = this.log.calls.find((each) => each.client === node.client && each.method === method);
    if (call === undefined) throw new Error(`no ${method} of ${node.name} waits`);
    return call;
  }
}
