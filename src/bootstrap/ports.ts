/** The ports of the actors. They open first, and use the actors and the event log only while a call runs. */
import type { JournalEventLog } from '../actors/events/log.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import type { Ports, UpstreamPort, WorkerPort } from '../actors/runtime/ports.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { OfferedFeatures } from '../domain/features.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { type AccountEvents, createAccountEvents } from '../io/modules/account-events.ts';
import { codePorts, openCodeSecret } from '../io/modules/chat.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import { openGatewayLog } from './events.ts';
import type { FileTransport } from './files.ts';
import { createWebhookPort, type WebhookDelivery } from './webhooks.ts';

interface PortDeps {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly log: Log;
  readonly workers: WorkerPort;
  readonly modules: ModuleClient;
  readonly files: FileTransport;
  /** Base address of the chat module; undefined where there is none. */
  readonly chatUrl: string | undefined;
  readonly actors: () => GatewayActors;
  /** Undefined until delivery starts. */
  readonly webhooks: () => WebhookDelivery | undefined;
  readonly ownership: Ownership;
  readonly upstreams: UpstreamPort;
  readonly features: () => OfferedFeatures;
  /** Id of the present life of a cluster's log. */
  readonly logId: string | undefined;
}

interface OpenedPorts {
  readonly ports: Ports;
  readonly accountEvents: AccountEvents;
  /** Opens at the first call, as does the log: messages of an earlier run may need both before the start does. */
  readonly codeSecret: () => Promise<Uint8Array>;
  readonly eventLog: () => Promise<JournalEventLog>;
}

export function openPorts(deps: PortDeps): OpenedPorts {
  const { configuration, settings, log, workers, modules, files, chatUrl, actors, ownership } = deps;
  const codeSecret = once(() => openCodeSecret(actors().administration));
  const eventLog = once(() => openGatewayLog(actors().administration, settings, ownership, deps.logId));
  const { project } = configuration;
  const mayPublish = () => !deps.features().missing.has('events');
  const codes = codePorts(chatUrl, { secret: codeSecret, modules, project, newRequestId });
  const webhooks = createWebhookPort({ eventLog, delivery: deps.webhooks, mayPublish, log });
  const accountEvents = createAccountEvents({
    modules,
    addresses: accountEventModules(configuration),
    project,
    newRequestId,
    onGaveUp: (userId, module) => log.write('accountRemovalUntold', { userId, module }),
  });
  const ports = { workers, ...files.ports, ...codes, accountEvents, webhooks, upstreams: deps.upstreams };
  return { ports, accountEvents, codeSecret, eventLog };
}

function accountEventModules({ modules }: Configuration): Map<string, string> {
  const wanting = Object.entries(modules).filter(([, { accountEvents }]) => accountEvents);
  return new Map(wanting.map(([name, { url }]) => [name, url]));
}

/** All calls get the same promise. */
function once<T>(open: () => Promise<T>): () => Promise<T> {
  let opened: Promise<T> | undefined;
  return () => {
    opened ??= open();
    return opened;
  };
}
