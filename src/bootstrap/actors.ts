/** Opens the journal and starts the actor system over it, with everything that actors may ask of the world. */
import { KINDS } from '../actors/kinds.ts';
import type { WebhookPort } from '../actors/runtime/ports.ts';
import { randomSupply } from '../actors/runtime/random.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../actors/runtime/system.ts';
import { auditRowsMax } from '../domain/audit.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { LiveSettings } from '../domain/settings/settings.ts';
import { restoreSettings } from '../io/admin/settings.ts';
import { codePorts, openCodeSecret } from '../io/modules/chat.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import type { WorkerPool } from '../workers/pool.ts';
import type { FileTransport } from './files.ts';
import { openStorage } from './journal.ts';

/** The journal's file grows by so much at a time, filled with zeros, so that a full disk is met before a commit. */
const JOURNAL_STEP_BYTES = 64 * 1024 * 1024;

/** Whom actors call. */
interface ActorCalls {
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly files: FileTransport;
  readonly chatUrl: string | undefined;
  readonly webhooks: WebhookPort;
}

/** Throws `JournalUnusable`, `JournalTooNew`. */
export async function startActors(
  configuration: Configuration,
  settings: LiveSettings,
  { workers, modules, files, chatUrl, webhooks }: ActorCalls,
  { log, onFatal }: { readonly log: Log; readonly onFatal: (error: Error) => void },
): Promise<RunningSystem> {
  const journal = await openStorage({
    directory: configuration.dataPath,
    auditRowsMax: (ring) => auditRowsMax(settings, ring),
    stepBytes: JOURNAL_STEP_BYTES,
    onShortage(error) {
      if (error === undefined) log.info('the disk has room again');
      else log.error({ err: error }, 'the disk is short');
    },
    onDamage({ table, key, message }) {
      log.error({ table, key }, `${message}; look at the journal with the command check`);
    },
  });
  let secret: Promise<Uint8Array>;
  const codes = codePorts(chatUrl, {
    secret: () => secret,
    modules,
    project: configuration.project,
    newRequestId,
  });
  const actors = createActorSystem({
    kinds: KINDS,
    journal,
    ports: { workers, ...files.ports, ...codes, webhooks },
    settings,
    clock: Date.now,
    randomBytes: randomSupply(),
    schedule: nodeSchedule,
    onFatal,
    onBug: ({ error, ...report }) => log.error({ ...report, err: error }, 'an actor failed'),
  });
  // Before anything that an earlier run left behind is delivered.
  files.join(actors);
  secret = openCodeSecret(actors.administration);
  await secret;
  await restoreSettings(actors, settings);
  return actors;
}
