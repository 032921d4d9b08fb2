/** Opens the journal, and starts the actor system over it with its ports. */
import { KINDS } from '../actors/kinds.ts';
import type { DiskJournal } from '../actors/runtime/journal/lmdb.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import type { Ports } from '../actors/runtime/ports.ts';
import { randomSupply } from '../actors/runtime/random.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../actors/runtime/system.ts';
import { auditRowsMax } from '../domain/audit.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { Log } from '../io/observability/log.ts';
import { openStorage } from './journal.ts';

/** The file of the journal grows in steps of zeros, so that a full disk is found before a commit needs the space. */
const JOURNAL_STEP_BYTES = 64 * 1024 * 1024;

/** Throws `JournalUnusable`, `JournalTooNew`. */
export function openActorJournal(dataPath: string, settings: SettingsReader, log: Log): Promise<DiskJournal> {
  return openStorage({
    directory: dataPath,
    auditRowsMax: (ring) => auditRowsMax(settings, ring),
    stepBytes: JOURNAL_STEP_BYTES,
    onShortage(error) {
      if (error === undefined) log.write('diskRecovered');
      else log.write('diskFull', { err: error });
    },
    onDamage({ table, key, message }) {
      log.write('journalDamaged', { table, key, detail: message });
    },
  });
}

interface ActorDeps {
  readonly journal: DiskJournal;
  readonly ports: Ports;
  readonly settings: SettingsReader;
  readonly log: Log;
  readonly onFatal: (error: Error) => void;
  readonly ownership: Ownership;
}

/**
 * Messages and timers of an earlier run are delivered from the next event-loop tick on: the ports answer by then, although
 * later parts of the gateway are still opening. Throws `JournalTooNew`.
 */
export function startActors({ journal, ports, settings, log, onFatal, ownership }: ActorDeps): RunningSystem {
  return createActorSystem({
    kinds: KINDS,
    journal,
    ports,
    settings,
    clock: Date.now,
    randomBytes: randomSupply(),
    schedule: nodeSchedule,
    onFatal,
    ownership,
    onBug: ({ error, ...report }) => log.write('actorFailed', { ...report, err: error }),
  });
}
