/** Nodes of a cluster with actor systems, over one log in memory and links in memory; the test moves the clock. */

import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { MemoryLog } from '../../../kit/journal/memory-log.ts';
import type { AnyKind } from '../../../src/actors/runtime/actor.ts';
import { type ClusterNode, createClusterNode } from '../../../src/actors/runtime/replication/cluster-node.ts';
import type { PeerListener } from '../../../src/actors/runtime/replication/port.ts';
import type { ReplicaOptions } from '../../../src/actors/runtime/replication/replica.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { ManualClock, seededBytes } from './actors.ts';

const LEASE_MS = 1_000;
/** Turns of the event loop that count as rest. */
const ROUNDS = 60;

export interface TestMember extends ClusterNode {
  readonly store: MemoryJournal;
  readonly system: RunningSystem;
  /** Frames of this node that have not arrived: only while `isUnlinked`. */
  isUnlinked: boolean;
  /** Offset by which its wall clock is ahead. Milliseconds. */
  skewMs: number;
  readonly fatal: Error[];
}

export class TestCluster {
  readonly clock = new ManualClock();
  readonly log = new MemoryLog({
    immediate: (run) => setImmediate(run),
    clock: this.clock.read,
    leaseMs: LEASE_MS,
  });
  readonly members: TestMember[] = [];
  readonly #listeners: PeerListener[] = [];
  readonly #kinds: readonly AnyKind[];

  constructor(kinds: readonly AnyKind[]) {
    this.#kinds = kinds;
  }

  /** A node that has joined. */
  async add(name: string, given: Pick<ReplicaOptions, 'judge' | 'sampleRows'> = {}): Promise<TestMember> {
    const store = new MemoryJournal({ immediate: (run) => setImmediate(run) });
    const fatal: Error[] = [];
    const schedule = { immediate: (run: () => void) => setImmediate(run), timer: this.clock.timer };
    const position = this.members.length;
    const each = (tell: (listener: PeerListener) => void) => {
      if (this.members[position]?.isUnlinked === true) return;
      for (const [index, listener] of this.#listeners.entries()) if (index !== position) tell(listener);
    };
    const onFatal = (error: Error) => fatal.push(error);
    const onBug = ({ error }: { readonly error: unknown }) =>
      fatal.push(error instanceof Error ? error : new Error(String(error)));
    const clock = () => this.clock.nowMs + (this.members[position]?.skewMs ?? 0);
    const parts = createClusterNode({
      store,
      log: this.log.connect(clock),
      peers: (listener) => {
        this.#listeners.push(listener);
        return {
          push: (row) => each((to) => to.onPush(row)),
          applied: (applied) => each((to) => to.onApplied(parts.node.node, applied)),
          isFedBy: () => !this.members.some(({ isUnlinked }) => isUnlinked),
        };
      },
      schedule,
      clock,
      monotonicMs: this.clock.read,
      leaseMs: LEASE_MS,
      name,
      ...given,
      onFatal,
      onBug,
    });
    await parts.node.start();
    const system = createActorSystem({
      kinds: this.#kinds,
      journal: parts.journal,
      cluster: parts.view,
      node: parts.node.node,
      ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
      settings: new LiveSettings(),
      clock,
      randomBytes: seededBytes(position),
      schedule,
      onFatal,
      onBug,
    });
    const member = { ...parts, store, system, isUnlinked: false, skewMs: 0, fatal };
    this.members.push(member);
    await this.settle();
    return member;
  }

  /** The member that owns an actor. */
  ownerOf({ kind }: AnyKind, id: string): TestMember {
    const owner = this.members.find(({ view }) => view.owns(kind, id));
    if (owner === undefined) throw new Error(`no member owns ${kind} ${id}`);
    return owner;
  }

  /** An id of this kind that the member owns, among those that begin with `prefix`. */
  idOf(member: TestMember, { kind }: AnyKind, prefix = ''): string {
    for (let number = 1; ; number += 1)
      if (member.view.owns(kind, `${prefix}${number}`)) return `${prefix}${number}`;
  }

  async settle(): Promise<void> {
    for (let round = 0; round < ROUNDS; round += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Moves the clock in small steps, with rest after each. */
  async advance(durationMs: number): Promise<void> {
    const endMs = this.clock.nowMs + durationMs;
    while (this.clock.nowMs < endMs) {
      const stepMs = Math.min(this.clock.nowMs + 50, endMs);
      while (this.clock.fireNext(stepMs)) await new Promise((resolve) => setImmediate(resolve));
      this.clock.nowMs = stepMs;
      await this.settle();
    }
  }

  stop(): void {
    for (const { node } of this.members) node.stop();
  }
}
