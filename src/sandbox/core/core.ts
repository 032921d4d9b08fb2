/**
 * The sandbox core module: a notice board, as an example of a customer-specific module. It has endpoints without a
 * built-in tool and an event type of its own (spec 6.3), to one user or to all.
 */
import { toIso } from '../../domain/time.ts';
import type { ModuleCall } from '../call-arguments.ts';
import { boundOf, callerOf, limitOf, optionalId, pageOf, requiredText } from '../call-arguments.ts';
import { EventList } from '../events.ts';
import { endpointOf, type ModuleEndpoint, type SandboxModule } from '../module.ts';
import { applying, committing } from '../record-log.ts';
import { CORE_ENDPOINTS } from './interface.ts';

const TEXT_CHARACTERS_MAX = 1_000;
/** Notices kept; the oldest go first. */
const NOTICES_MAX = 10_000;

/** The fields of each record. */
interface CoreRows {
  readonly noticePosted: {
    readonly utcMs: number;
    readonly userId: string;
    /** Null: for all users. */
    readonly toUserId: string | null;
    readonly text: string;
  };
}

const commitCore = committing<CoreRows>('core');

interface Notice {
  readonly id: string;
  readonly fromUserId: string;
  readonly toUserId: string | null;
  readonly text: string;
  readonly dateTime: string;
}

class Board {
  readonly events = new EventList('core');
  /** Oldest first. */
  #notices: Notice[] = [];

  readonly apply = applying<CoreRows>({
    noticePosted: ({ tick, utcMs, userId, toUserId, text }) => {
      const notice = { id: tick, fromUserId: userId, toUserId, text, dateTime: toIso(utcMs) };
      this.#notices.push(notice);
      if (this.#notices.length > NOTICES_MAX * 1.1) this.#notices = this.#notices.slice(-NOTICES_MAX);
      const data = JSON.stringify({ ...notice, tick });
      this.events.add({ tick, type: 'NoticePosted', crmId: toUserId, data });
    },
  });

  post(call: ModuleCall): object {
    const userId = callerOf(call);
    const text = requiredText(call, 'text', TEXT_CHARACTERS_MAX);
    const toUserId = optionalId(call, 'toUserId') ?? null;
    const tick = call.tick();
    commitCore(call, 'noticePosted', { tick, utcMs: call.nowMs, userId, toUserId, text });
    return { id: tick, fromUserId: userId, toUserId, text, dateTime: toIso(call.nowMs) };
  }

  /** Those for all users, to the caller and by the caller; newest first. */
  list(call: ModuleCall): object {
    const userId = callerOf(call);
    const before = boundOf(call, 'before');
    const found = [...this.#notices].reverse().filter(({ id, fromUserId, toUserId }) => {
      const mine = toUserId === null || toUserId === userId || fromUserId === userId;
      return mine && (before === undefined || BigInt(id) < before);
    });
    const { items, next } = pageOf(found, limitOf(call.query, 20, 100));
    return { notices: items, next };
  }
}

export function createCore(): SandboxModule {
  const board = new Board();
  const endpoint = (key: keyof typeof CORE_ENDPOINTS, handle: (call: ModuleCall) => object): ModuleEndpoint =>
    endpointOf('core', CORE_ENDPOINTS, key, 'user', handle);
  return {
    name: 'core',
    endpoints: [
      endpoint('POST notices/create', (call) => board.post(call)),
      endpoint('GET notices/list', (call) => board.list(call)),
    ],
    events: board.events,
    apply: board.apply,
  };
}
