/** All parts of a gateway that its listeners serve. gateway.ts creates them; http.ts, routes.ts and metrics.ts use them. */

import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { LimitExchange } from '../actors/limits/limit-exchange.ts';
import type { Limiter } from '../actors/limits/limiter.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { OfferedFeatures } from '../domain/features.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { LiveSettings } from '../domain/settings/settings.ts';
import type { Site } from '../domain/site.ts';
import type { Dashboard } from '../io/admin/dashboard.ts';
import type { History } from '../io/admin/history/history.ts';
import type { KnownModule } from '../io/admin/modules.ts';
import type { Reload } from '../io/admin/node-work.ts';
import type { AdminNodes } from '../io/admin/nodes.ts';
import type { ApiKeyCipher } from '../io/apps/api-keys.ts';
import type { FileCodes } from '../io/files/download/file-code.ts';
import type { Server } from '../io/http/listen/server.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import type { UpstreamCredentials } from '../io/mcp/credentials/credentials.ts';
import type { ListChanges } from '../io/mcp/list-changes.ts';
import type { AccountEvents } from '../io/modules/account-events.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Metrics } from '../io/observability/metrics.ts';
import type { ModuleRules } from '../io/proxy/reach.ts';
import type { WebSockets } from '../io/proxy/web-sockets.ts';
import type { DraftDeps } from '../io/routes/files-v2.ts';
import type { SupervisedSandbox } from '../sandbox/supervisor.ts';
import type { WorkerPool } from '../workers/pool.ts';
import type { OpenedCluster } from './cluster/open.ts';
import type { Connect } from './connect.ts';
import type { EventDelivery } from './events.ts';
import type { FileTransport } from './files.ts';
import type { FinishedRequests } from './metrics.ts';
import type { AssemblyOptions } from './options.ts';
import type { ServedCatalog } from './served-catalog.ts';
import type { OpenedStaff } from './staff.ts';
import type { Telemetry } from './telemetry.ts';
import type { WebhookDelivery } from './webhooks.ts';

export interface HttpDeps extends OpenedStaff {
  readonly configuration: Configuration;
  readonly options: AssemblyOptions;
  readonly settings: LiveSettings;
  readonly actors: GatewayActors;
  /** The cluster of this node; undefined without one. */
  readonly cluster: OpenedCluster | undefined;
  readonly cipher: ApiKeyCipher;
  readonly events: EventDelivery;
  readonly accountEvents: AccountEvents;
  readonly webhooks: WebhookDelivery;
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly files: FileTransport;
  readonly fileCodes: FileCodes;
  readonly connect: Connect;
  readonly drafts: DraftDeps;
  readonly site: Site;
  /** Features at present: in a cluster they depend on the other members. */
  readonly features: () => OfferedFeatures;
  readonly moduleAddresses: ReadonlyMap<string, string>;
  readonly moduleRules: ReadonlyMap<string, ModuleRules>;
  readonly catalog: LiveCatalog;
  readonly served: ServedCatalog;
  readonly credentials: UpstreamCredentials;
  readonly listChanges: ListChanges;
  readonly sockets: WebSockets;
  readonly reload: Reload;
  readonly nodes: AdminNodes;
  readonly knownModules: readonly KnownModule[];
  readonly limiter: Limiter;
  /** Absent outside of a cluster. */
  readonly exchange: LimitExchange | undefined;
  readonly bounds: SharedBounds;
  readonly metrics: Metrics;
  readonly requests: FinishedRequests;
  readonly telemetry: Telemetry;
  readonly dashboard: Dashboard;
  readonly history: History;
  readonly publicServer: Server;
  readonly internalServer: Server;
  readonly sandbox: SupervisedSandbox | undefined;
}
