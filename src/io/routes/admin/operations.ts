/** Admin JSON of operations: the live dashboard, uploads, events, failed actors and their dead letters. */

import { UPLOAD_SLOTS_ID, uploadSlots } from '../../../actors/files/v1/upload-slots.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import type { AuditEvent } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { EventLog } from '../../../domain/events/events.ts';
import { ID_EXAMPLE } from '../../../domain/examples.ts';
import { array, idText, integer, nullable, object, optional, text, utcText } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { toIso } from '../../../domain/time.ts';
import { nicknameSchema, withNicknames } from '../../accounts/nicknames.ts';
import { ALL_NODES, type Dashboard } from '../../admin/dashboard.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { isSessionAlive } from '../../http/checks/session-lookup.ts';
import { type AnyRoute, adminRoute, type RouteContext } from '../../http/table/route.ts';
import { failingActor, missingNodes } from './records.ts';
import type { StaffDeps } from './staff.ts';

const DEAD_LETTERS_MAX = 1_000;
const EVENTS_PAGE = 100;

export interface OperationDeps extends Pick<StaffDeps, 'staff'> {
  readonly administration: Administration;
  readonly dashboard: Dashboard;
  readonly nodes: AdminNodes;
  readonly eventLog: Pick<EventLog, 'newest' | 'page'>;
}

const actorName = object({
  kind: text({ maxLength: 64, examples: ['user'] }),
  id: text({ maxLength: 256, examples: [ID_EXAMPLE] }),
});
const deadKey = object({
  timeMs: integer({ minimum: 0 }),
  kind: text({ maxLength: 64, examples: ['user'] }),
  id: text({ maxLength: 256, examples: [ID_EXAMPLE] }),
  seq: integer({ minimum: 0 }),
});
export function createAdminOperationRoutes(deps: OperationDeps): AnyRoute[] {
  return [liveRoute(deps), uploadsRoute, eventsRoute(deps), actorsRoute(deps), ...actRoutes(deps)];
}

/** Not counted as a request of the session, because pages reconnect by themselves. */
function liveRoute({ dashboard, nodes, staff }: OperationDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/live',
    summary: 'Samples of the last two seconds as server-sent events',
    description:
      'One frame every two seconds. The stream ends with the session or the role. In a cluster a frame `look` names the nodes that it is of and those that did not answer; a frame `missing` names those alone.',
    docs: {
      answers: {
        200: {
          description: 'The stream',
          type: 'text/event-stream',
          schema: text({ description: 'Frames of server-sent events', examples: ['data: {}\n\n'] }),
        },
      },
      sends: ['Cache-Control'],
    },
    limits: ['NoRateLimit'],
    query: object({
      node: optional(
        text({
          maxLength: 32,
          examples: ['a'],
          description: `Name of a node of the cluster, ${ALL_NODES} for all; the one that answers unless given`,
        }),
      ),
    }),
    errors: ['NotFound'],
    handle({ actors, session, query: { node } }) {
      const names = [ALL_NODES, nodes.name, ...nodes.others()];
      if (node !== undefined && !names.includes(node)) throw new GatewayError('NotFound', 'no such node');
      const mayWatch = () =>
        staff.effectiveRoleOf(session.userId) !== undefined &&
        isSessionAlive(actors, session.userId, session.id);
      const stream = dashboard.watch(mayWatch, node);
      if (stream === undefined) throw new GatewayError('Overloaded', 'too many dashboards are open');
      return stream;
    },
  });
}

const uploadsRoute = adminRoute({
  method: 'GET',
  path: '/ProxyAdmin/api/uploads',
  summary: 'Uploads of the first transport that are open now',
  description: 'Buffered ones; streams of the second transport are in the live dashboard.',
  result: array(
    object({ uploadId: integer(), userId: idText(), nickname: nicknameSchema, startedUtc: utcText() }),
  ),
  async handle({ actors }) {
    const slots = await actors.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'slots' });
    const rows = slots.map(({ uploadId, userId, grantedMs }) => ({
      uploadId,
      userId,
      startedUtc: toIso(grantedMs),
    }));
    return withNicknames(actors, rows, ({ userId }) => userId);
  },
});

/** Shows the source and the receiver of events, not their content, which is private to the receiver. */
function eventsRoute({ eventLog }: OperationDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/events',
    summary: 'The newest events of the log, the newest first, without what they say',
    description: 'What an event says stays with those it concerns.',
    query: object({
      before: optional(integer({ minimum: 1, description: 'Position; the newest unless given' })),
    }),
    result: array(
      object({
        sequence: integer(),
        module: text({ examples: ['wallet'] }),
        tick: text({ examples: ['1795167000000123'] }),
        type: text({ examples: ['TxInWallet'] }),
        userId: nullable(idText()),
        nickname: nicknameSchema,
        sizeBytes: integer(),
        acceptedUtc: utcText(),
      }),
    ),
    handle({ actors, query }) {
      const end = Math.min(query.before ?? Number.POSITIVE_INFINITY, eventLog.newest + 1);
      const start = Math.max(0, end - 1 - EVENTS_PAGE);
      const rows = eventLog
        .page(start, EVENTS_PAGE)
        .filter(({ sequence }) => sequence < end)
        .map(({ sequence, module, tick, type, userId, jsonText, acceptedMs }) => ({
          sequence,
          module,
          tick,
          type,
          userId: userId ?? null,
          sizeBytes: jsonText.length,
          acceptedUtc: toIso(acceptedMs),
        }))
        .reverse();
      return withNicknames(actors, rows, ({ userId }) => userId);
    },
  });
}

function actorsRoute({ administration, nodes }: OperationDeps): AnyRoute {
  const dead = object({
    ...deadKey.properties,
    utc: utcText(),
    reason: text({ examples: ['TypeError'] }),
    command: nullable(text({ examples: ['login'] })),
  });
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/actors',
    summary: 'Actors that failed lately, and messages that were given up',
    description: 'A quarantined actor answers 503 until it is reset or its message is skipped.',
    result: object({
      failing: array(failingActor),
      missing: missingNodes,
      dead: array(dead),
      /** Rows of the journal of this node that were found damaged since the start. */
      damagedRows: integer(),
    }),
    handle: async () => ({
      damagedRows: administration.journal.damagedRows,
      ...(await failingOf(nodes)),
      dead: administration.dead(DEAD_LETTERS_MAX).map(({ timeMs, kind, id, seq, reason, command }) => ({
        timeMs,
        kind,
        id,
        seq,
        utc: toIso(timeMs),
        reason,
        // The command itself may contain private data of its owner.
        command: 'type' in command && typeof command.type === 'string' ? command.type : null,
      })),
    }),
  });
}

async function failingOf(nodes: AdminNodes) {
  const { failing, missing } = await nodes.failing();
  return { failing: [...failing], missing: [...missing] };
}

type ActorName = { kind: string; id: string };

function actRoutes({ administration, nodes }: OperationDeps): AnyRoute[] {
  const note = (
    context: RouteContext<unknown, unknown, SessionContext>,
    event: AuditEvent,
    name: ActorName,
  ) =>
    context.actors.auditFirst({
      utcMs: context.nowMs,
      event,
      userId: context.session.userId,
      fields: { kind: name.kind, id: name.id, address: context.client.address },
    });
  const act = (
    path: string,
    summary: string,
    description: string,
    event: AuditEvent,
    run: (kind: string, id: string) => Promise<boolean>,
  ) =>
    adminRoute({
      method: 'POST',
      path,
      summary,
      description,
      body: actorName,
      result: actorName,
      errors: ['NotFound', 'FreshLoginRequired'],
      async handle(context) {
        requireFresh(context);
        const { kind, id } = context.body;
        if (!(await run(kind, id))) throw new GatewayError('NotFound');
        await note(context, event, context.body);
        return context.body;
      },
    });
  return [
    act(
      '/ProxyAdmin/api/actors/reset',
      'End the quarantine of an actor: it is replayed at its next message',
      'Where the cause is gone, nothing is lost. Needs a recent login.',
      'actorReset',
      (kind, id) => nodes.reset(kind, id),
    ),
    act(
      '/ProxyAdmin/api/actors/skip',
      'Move the next message of an actor to the dead letters and end its quarantine',
      'For a message that fails each time: what it would have changed does not happen. Needs a recent login.',
      'actorSkipped',
      (kind, id) => nodes.skip(kind, id),
    ),
    adminRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/actors/discard',
      summary: 'Remove a dead letter',
      description: 'All four fields name it, as `actors` lists them. Needs a recent login.',
      body: deadKey,
      result: deadKey,
      errors: ['NotFound', 'FreshLoginRequired'],
      async handle(context) {
        requireFresh(context);
        const { body } = context;
        await note(context, 'deadLetterRemoved', body);
        await administration.removeDead(body);
        return body;
      },
    }),
  ];
}
