/** Trading rooms: who may see and join them, and the orders that only their members meet. */

import { toIso } from '../../domain/time.ts';
import { callerOf, limitOf, type ModuleCall, requiredId, requiredText } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { readPair } from './pairs.ts';
import { commitMarkets } from './records.ts';
import type { Markets, Room } from './state.ts';

const NAME_CHARACTERS_MAX = 64;
const MEMBERS_MAX = 100;
/** Open rooms of one owner. */
const OWNED_MAX = 20;

/** Open rooms, and closed ones that the caller was in; newest first. */
export function listRooms(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const joined = call.query.get('joined');
  if (joined !== undefined && joined !== 'true' && joined !== 'false')
    throw new SandboxError('BadRequest', 'joined is true or false');
  const rooms = [...markets.rooms.values()].reverse().filter((room) => {
    const member = room.members.has(userId);
    return (room.open || member) && (joined === undefined || member === (joined === 'true'));
  });
  return { rooms: rooms.slice(0, limitOf(call.query, 50, 200)).map((room) => wireRoom(room, userId)) };
}

export function createRoom(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const name = requiredText(call, 'name', NAME_CHARACTERS_MAX);
  const pair = readPair(call.body['pair']);
  const owned = [...markets.rooms.values()].filter((room) => room.open && room.ownerId === userId);
  if (owned.length >= OWNED_MAX) throw new SandboxError('TooManyRooms');
  const roomId = call.tick();
  commitMarkets(call, 'roomCreated', {
    tick: roomId,
    utcMs: call.nowMs,
    roomId,
    userId,
    name,
    pair: pair.code,
  });
  return wireRoom(markets.existingRoom(roomId), userId);
}

/** Joining a room that one is in changes nothing. */
export function joinRoom(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const room = roomOf(markets, call.body['roomId']);
  if (!room.open) throw new SandboxError('RoomClosed');
  if (!room.members.has(userId)) {
    if (room.members.size >= MEMBERS_MAX) throw new SandboxError('RoomFull');
    commitMarkets(call, 'roomJoined', { roomId: room.id, userId });
  }
  return wireRoom(room, userId);
}

export function closeRoom(markets: Markets, call: ModuleCall): object {
  const userId = callerOf(call);
  const room = roomOf(markets, call.body['roomId']);
  if (room.ownerId !== userId) throw new SandboxError('NotRoomOwner');
  if (!room.open) throw new SandboxError('RoomClosed');
  commitMarkets(call, 'roomClosed', { roomId: room.id });
  return wireRoom(room, userId);
}

export function joinedRoomOf(markets: Markets, userId: string, id: unknown): Room {
  const room = roomOf(markets, id);
  if (!room.members.has(userId)) throw new SandboxError('NotInRoom');
  return room;
}

function roomOf(markets: Markets, value: unknown): Room {
  const room = markets.rooms.get(requiredId(value, 'roomId'));
  if (room === undefined) throw new SandboxError('UnknownRoom');
  return room;
}

function wireRoom({ id, name, pair, ownerId, members, open, utcMs }: Room, userId: string): object {
  return {
    id,
    name,
    pair: pair.code,
    ownerId,
    state: open ? 'open' : 'closed',
    members: members.size,
    joined: members.has(userId),
    dateTime: toIso(utcMs),
  };
}
