/** Actors over a journal with nothing around them: no workers, settings as they come, every fault thrown. */
import { randomBytes } from 'node:crypto';
import type { AnyKind } from '../../src/actors/runtime/actor.ts';
import type { Journal } from '../../src/actors/runtime/journal/port.ts';
import { nodeSchedule } from '../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { BareRuntime } from './runtime.ts';

const OWN: BareRuntime = { createActorSystem, nodeSchedule, LiveSettings };

/** Starts a system with this build's runtime unless another one is given. */
export function startBareSystem(kind: AnyKind, journal: Journal, runtime = OWN): RunningSystem {
  return runtime.createActorSystem({
    kinds: [kind],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new runtime.LiveSettings(),
    clock: Date.now,
    randomBytes,
    schedule: runtime.nodeSchedule,
    onFatal: (error) => {
      throw error;
    },
    onBug: ({ error }) => {
      throw error;
    },
  });
}
