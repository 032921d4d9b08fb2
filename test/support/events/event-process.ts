/** One process of a simulated cluster with the log of events and its inbox, over a journal in memory. */

import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { EventInbox } from '../../../src/actors/events/inbox.ts';
import { type JournalEventLog, openEventLog } from '../../../src/actors/events/log.ts';
import type { AnyKind } from '../../../src/actors/runtime/actor.ts';
import type { Ports } from '../../../src/actors/runtime/ports.ts';
import { type ClusterNode, createClusterNode } from '../../../src/actors/runtime/replication/cluster-node.ts';
import type { LogNode } from '../../../src/actors/runtime/replication/node.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { type IncomingEvent, readEvents } from '../../../src/domain/events/intake.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import type { ModuleClient } from '../../../src/io/modules/client.ts';
import { EventPoller } from '../../../src/io/modules/event-poller.ts';
import type { Log } from '../../../src/io/observability/log.ts';
import { seededBytes } from '../actors/actors.ts';
import type { Application, ProcessTools } from '../actors/simulated-cluster.ts';
import { LIMITS } from '../actors/simulation.ts';
import { type EventFault, faultyAdministration, faultyWrites } from './event-faults.ts';

const SETTINGS = new LiveSettings();

/** State that survives a process. */
export class EventDisk {
  readonly journal: MemoryJournal;
  /** Completes a commit at a moment of the simulation; set by the process that runs. */
  whenWritten: (run: () => void) => void = queueMicrotask;

  constructor() {
    this.journal = new MemoryJournal({ immediate: (run) => this.whenWritten(run) });
  }
}

/** A module that is polled: its events after a cursor. */
export type PolledModule = (afterTick: number, limit: number) => string;

interface EventProcessOptions {
  readonly disk: EventDisk;
  readonly tools: ProcessTools;
  readonly fault?: EventFault | undefined;
  /** By name. */
  readonly polled?: Readonly<Record<string, PolledModule>>;
  /** 0 to 1, for the poller. */
  readonly random?: () => number;
  /** Further kinds of actors of the process, their ports, and work that begins once it serves. */
  readonly kinds?: readonly AnyKind[];
  readonly ports?: Partial<Ports>;
  readonly onOpened?: (opened: OpenedEvents, cluster: ClusterNode) => void;
}

/** Parts of a process once it serves. */
export interface OpenedEvents {
  readonly system: RunningSystem;
  readonly log: JournalEventLog;
  readonly inbox: EventInbox;
}

export class EventProcess implements Application {
  readonly cluster: ClusterNode;
  readonly #options: EventProcessOptions;
  events: OpenedEvents | undefined;
  #isStopped = false;

  constructor(options: EventProcessOptions) {
    this.#options = options;
    const { disk, tools, fault } = options;
    disk.whenWritten = (run) =>
      tools.schedule.immediate(() => {
        if (!this.#isStopped) run();
      });
    const { client: log } = tools;
    this.cluster = createClusterNode({
      ...tools,
      log,
      store: disk.journal,
      eventWrites: faultyWrites(fault),
      onBug: this.#onBug,
    });
    this.#start().catch((error: Error) => tools.onFatal(error));
  }

  readonly #onBug = ({ error }: { readonly error: unknown }): void =>
    this.#options.tools.onFatal(error instanceof Error ? error : new Error(String(error)));

  get node(): LogNode {
    return this.cluster.node;
  }

  get isOwner(): boolean {
    return this.cluster.view.owns('eventLog', 'all');
  }

  async leave(): Promise<void> {
    await this.events?.system.drain(0);
    await this.node.leave();
  }

  stop(): void {
    this.#isStopped = true;
    this.node.stop();
  }

  async #start(): Promise<void> {
    await this.node.enter();
    if (this.#isStopped) return;
    const { tools, kinds = [], ports } = this.#options;
    const { journal, view } = this.cluster;
    const { clock, schedule } = tools;
    const workers = { run: async () => ({ ok: false, error: 'InternalError' }) as const };
    const system = createActorSystem({
      kinds,
      journal,
      cluster: view,
      node: this.node.node,
      ports: { workers, ...ports },
      settings: SETTINGS,
      clock,
      randomBytes: seededBytes(this.node.node),
      schedule,
      limits: LIMITS,
      onFatal: (error) => tools.onFatal(error),
      onBug: this.#onBug,
    });
    await this.node.start();
    const { administration } = system;
    const world = { administration, settings: SETTINGS, clock, schedule, ownership: view };
    const log = await openEventLog({ ...world, newEpoch: () => tools.name, logId: tools.client.logId });
    const { fault } = this.#options;
    const inbox = new EventInbox({
      ...world,
      administration: faultyAdministration(administration, fault),
      admits: () => this.node.admits,
    });
    view.follow({ applied: () => undefined, membersChanged: () => inbox.ownershipChanged() });
    this.events = { system, log, inbox };
    for (const [module, events] of Object.entries(this.#options.polled ?? {})) this.#poll(module, events);
    this.#options.onOpened?.(this.events, this.cluster);
  }

  #poll(module: string, events: PolledModule): void {
    const { tools, random = () => 0.5 } = this.#options;
    const { system, inbox } = opened(this);
    const call: ModuleClient['call'] = async ({ url: { search } }) => {
      const asked = new URLSearchParams(search);
      const body = Buffer.from(events(Number(asked.get('after')), Number(asked.get('limit'))));
      return {
        ok: true,
        answer: { status: 200, contentType: 'application/json', headers: {}, body },
        elapsedMs: 0,
      };
    };
    new EventPoller({
      module,
      url: 'http://127.0.0.1:1',
      project: 'p',
      modules: { call },
      inbox,
      administration: system.administration,
      schedule: tools.schedule,
      newRequestId: () => 'r',
      random,
      log: { write: () => undefined } as unknown as Log,
      ownership: this.cluster.view,
    });
  }
}

export function opened({ events }: EventProcess): OpenedEvents {
  if (events === undefined) throw new Error('the process does not serve');
  return events;
}

/** Events of a module, one of each tick. */
export function eventsOf(module: string, ...ticks: readonly number[]): IncomingEvent[] {
  const texts = ticks.map(
    (tick) => `{"module":"${module}","tick":"${tick}","type":"x","data":{"id":${tick}}}`,
  );
  return [...readEvents(`{"events":[${texts.join(',')}]}`, 1_000, String)];
}
