/** Admin JSON of what needs a person: cases of the table of attention, with the page that handles each. */
import { user } from '../../../actors/accounts/user.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import { HOSTS_APP_ID } from '../../../domain/apps.ts';
import { array, named, object, oneOf, text } from '../../../domain/schema.ts';
import { ATTENTION_ROWS, type AttentionFacts, attentionOf } from '../../admin/attention.ts';
import { viewsOf } from '../../admin/mcp-servers.ts';
import type { KnownModule } from '../../admin/modules.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import type { LiveStaff } from '../../admin/staff.ts';
import { viewApp } from '../../apps/apps.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import type { UpstreamAdministration } from '../../mcp/upstreams/servers.ts';
import { type AdminAppDeps, pageOfApps } from './apps.ts';
import { DEAD_LETTERS_COUNTED_MAX, missingNodes } from './records.ts';

/** Applications that are looked at for an approval: more need the page of applications anyway. */
const APPS_MAX = 200;

interface AttentionDeps {
  readonly nodes: Pick<AdminNodes, 'troubles' | 'failing' | 'report'>;
  readonly staff: LiveStaff;
  readonly administration: Administration;
  readonly apps: AdminAppDeps;
  readonly mcpServers: UpstreamAdministration;
  readonly known: readonly KnownModule[];
}

const item = named(
  'AttentionItem',
  object({
    kind: oneOf(ATTENTION_ROWS.map(({ kind }) => kind)),
    level: oneOf(['bad', 'warn']),
    title: text({ examples: ['Webhook of Ledger sync fails'] }),
    detail: text({ examples: ['ledger.example.com, for 6 minutes. Events wait.'] }),
    link: text({ examples: ['Deliveries'] }),
    href: text({ description: 'Of the panel, below the origin', examples: ['/ProxyAdmin/Apps'] }),
  }),
);

export function createAdminAttentionRoute(deps: AttentionDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/attention',
    summary: 'What needs a person, the worst first, with the page that handles it',
    description:
      'Failing webhooks, open breakers, dead letters, storage, lag, a single admin with a single key, old keys of modules, decisions that wait. In a cluster of all nodes; `missing` names those that did not answer.',
    result: object({ items: array(item), missing: missingNodes }),
    async handle({ actors, nowMs }) {
      const { facts, missing } = await factsOf(deps, actors, nowMs);
      return { items: attentionOf(facts), missing: [...missing] };
    },
  });
}

async function factsOf(
  { nodes, staff, administration, apps, mcpServers, known }: AttentionDeps,
  actors: ActorSystem,
  nowMs: number,
): Promise<{ readonly facts: AttentionFacts; readonly missing: readonly string[] }> {
  const [troubles, { failing }, reports, waiting] = await Promise.all([
    nodes.troubles(),
    nodes.failing(),
    nodes.report(),
    pageOfApps(apps, actors, { after: '', limit: APPS_MAX, newest: true, approved: false }, nowMs),
  ]);
  const failed = troubles.answers.flatMap(({ value }) => value.webhooks.map(({ appId }) => appId));
  const views = await Promise.all(failed.map((appId) => viewApp(actors, appId)));
  const facts = {
    nodes: troubles.answers,
    appNames: new Map(views.flatMap((view) => (view === undefined ? [] : [[view.id, view.name] as const]))),
    failingActors: failing.length,
    deadLetters: administration.dead(DEAD_LETTERS_COUNTED_MAX).length,
    auditDropped: administration.auditDropped,
    reports,
    keysOfOnlyAdmin: await keysOfOnlyAdmin(staff, actors),
    toolsWaiting: viewsOf(mcpServers).flatMap(({ hidden }) =>
      hidden.filter(({ state }) => state !== 'hidden'),
    ).length,
    appsWaiting: waiting.rows.filter(({ id, disabled }) => !disabled && id !== HOSTS_APP_ID).length,
    moduleKeys: known,
    nowMs,
  };
  return { facts, missing: troubles.missing };
}

async function keysOfOnlyAdmin(staff: LiveStaff, actors: ActorSystem) {
  const [userId, ...others] = staff.admins();
  if (userId === undefined || others.length > 0 || staff.hasConfiguredKeys) return undefined;
  const { keys } = await actors.query(user, userId, { type: 'account' });
  return { userId, keys: keys.length };
}
