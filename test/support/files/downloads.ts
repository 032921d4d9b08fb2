/**
 * Both download routes on a free loopback port: files in a folder of this machine, a chat module that the test speaks
 * for, a gate with one person, one agent and the lesser sessions, and a pace that the test may hold.
 */
import { writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Test } from 'tap';
import { NO_LIMITS } from '../../../kit/launch.ts';
import type { PortResult } from '../../../src/actors/runtime/ports.ts';
import type { QuotaResult } from '../../../src/domain/limits/quotas.ts';
import type { SessionContext } from '../../../src/domain/sessions.ts';
import type { SettingName, SettingValue } from '../../../src/domain/settings/settings.ts';
import { SendBuffers } from '../../../src/io/files/download/buffers.ts';
import { Downloads } from '../../../src/io/files/download/downloads.ts';
import { FileMetadataCache } from '../../../src/io/files/download/file-cache.ts';
import { createFileCodes, type FileCodes } from '../../../src/io/files/download/file-code.ts';
import type { Pace } from '../../../src/io/files/download/sender.ts';
import { LocalStorage } from '../../../src/io/files/storage/local.ts';
import type { FileStorage } from '../../../src/io/files/storage/port.ts';
import type { StreamOwner } from '../../../src/io/files/stream-owner.ts';
import type { SessionLookup } from '../../../src/io/http/table/route.ts';
import type { ChatFile } from '../../../src/io/modules/chat-files.ts';
import { createDownloadRoutes } from '../../../src/io/routes/downloads.ts';
import { inlineWorkers } from '../account.ts';
import { type HttpFixture, startHttp } from '../http.ts';
import { sessionOf } from '../mcp.ts';

/** Tokens of the gate; `SID` is a cookie, the others bearers. */
export const SID = 'person';
export const BEARER = 'agent';
export const BASIC_BEARER = 'basic';
export const APP_BEARER = 'app';
export const SIGNED_APP_BEARER = 'signed-app';
export const READER_ID = '1842001';
export const OWNER_ID = '77';
export const SENT_MS = Date.parse('2026-01-02T03:04:05.678Z');
/** Time in answers for a file that was sent then. */
export const MODIFIED_MS = SENT_MS - 2_000;

const AGENT = sessionOf('McpVerified', READER_ID);
const SESSIONS: Readonly<Record<string, SessionContext>> = {
  [`browser ${SID}`]: { ...AGENT, id: '5', kind: 'browser', loginType: null, keyType: 'FIDO2' },
  [`mcp ${BEARER}`]: AGENT,
  [`mcp ${BASIC_BEARER}`]: sessionOf('McpBasic', READER_ID),
  [`mcp ${APP_BEARER}`]: sessionOf('McpApp', READER_ID),
  [`mcp ${SIGNED_APP_BEARER}`]: sessionOf('McpApp', READER_ID, true),
};

/** Nothing is ever held back. */
export const FREE_PACE: Pace = {
  charge: () => true,
  paid: async () => undefined,
  ask: (wantedBytes, go) => go(wantedBytes),
  leave: () => undefined,
};

export interface DownloadFixture {
  readonly http: HttpFixture;
  readonly root: string;
  readonly codes: FileCodes;
  readonly storage: FileStorage;
  readonly buffers: SendBuffers;
  readonly fileCache: FileMetadataCache;
  readonly downloads: Downloads;
  /** Answers of the chat module; a failure to refuse. */
  readonly chat: Map<string, ChatFile>;
  readonly closed: Set<string>;
  readonly asked: [fileId: string, readerId: string | null][];
  readonly faults: [message: string, error: unknown][];
  readonly ended: Set<string>;
  put(fileId: string, bytes: Uint8Array | string, name?: string): Promise<ChatFile>;
}

export interface DownloadFixtureOptions {
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  readonly pace?: (owner: StreamOwner) => Pace;
  readonly buffers?: SendBuffers;
  readonly unreadMs?: number;
  /** `McpBasicPersonalReads`; false unless given. */
  readonly personalReads?: boolean;
  /** Stands before the storage. */
  readonly storage?: (inner: FileStorage) => FileStorage;
  /** Awaited before every answer of the chat module. */
  readonly held?: () => Promise<void>;
  /** Answer of the limiter for every session. */
  readonly quotaResult?: QuotaResult;
  /** Requests come by a proxy that sends files itself, when its address is one of these. */
  readonly proxies?: readonly string[];
  readonly describe?: (fileId: string) => Promise<PortResult<ChatFile>> | undefined;
}

function openStorage(root: string, faults: [string, unknown][]): LocalStorage {
  const onFault = (message: string) => faults.push([message, undefined]);
  return new LocalStorage({ workers: inlineWorkers().workers, root, onFault });
}

function gateOf(ended: ReadonlySet<string>, quotaResult: QuotaResult | undefined): SessionLookup {
  return {
    authenticate(token, kind) {
      const session = ended.has(token) ? undefined : SESSIONS[`${kind} ${token}`];
      return session === undefined ? undefined : { session, quotaResult };
    },
  };
}

export async function startDownloads(
  t: Test,
  options: DownloadFixtureOptions = {},
): Promise<DownloadFixture> {
  const root = await mkdtemp(join(tmpdir(), 'downloads-'));
  const faults: [string, unknown][] = [];
  const local = openStorage(root, faults);
  const storage = options.storage?.(local) ?? local;
  const chat = new Map<string, ChatFile>();
  const closed = new Set<string>();
  const asked: [string, string | null][] = [];
  const ended = new Set<string>();
  const fileCache = new FileMetadataCache({
    async describe(fileId, readerId) {
      asked.push([fileId, readerId]);
      await options.held?.();
      const told = options.describe?.(fileId);
      if (told !== undefined) return told;
      const file = chat.get(fileId);
      if (file === undefined) return { ok: false, error: 'FileNotFound' };
      if (readerId !== null && closed.has(fileId)) return { ok: false, error: 'Forbidden' };
      return { ok: true, value: file };
    },
  });
  const buffers = options.buffers ?? new SendBuffers();
  const downloads = new Downloads({
    storage,
    buffers,
    pace: options.pace ?? (() => FREE_PACE),
    ...(options.unreadMs === undefined ? {} : { unreadMs: options.unreadMs }),
    proxy: { prefix: '/_files/', isUsed: () => http.settings.get('FileDownloadBytesPerSecond') === 0 },
    onFault: (message, error) => faults.push([message, error]),
  });
  const personalReads = () => options.personalReads === true;
  const codes = createFileCodes(Buffer.alloc(16, 5));
  const http = startHttp({
    routes: createDownloadRoutes({
      fileCodes: codes,
      fileCache,
      v1: downloads,
      v2: downloads,
      personalReads,
    }),
    gate: gateOf(ended, options.quotaResult),
    settings: { ...NO_LIMITS, ...options.settings },
    pipeline: { trustedProxies: options.proxies ?? [], sendfileHeader: 'x-accel' },
  });
  t.teardown(async () => {
    await http.close();
    await storage.close();
    await rm(root, { recursive: true, force: true });
  });
  return {
    http,
    root,
    codes,
    storage,
    buffers,
    fileCache,
    downloads,
    chat,
    closed,
    asked,
    faults,
    ended,
    async put(fileId, given, name = 'a.txt') {
      const bytes = Buffer.from(given);
      const key = { owner: OWNER_ID, fileId };
      await storeFile(local, key, bytes);
      const file: ChatFile = {
        fileId,
        ownerId: OWNER_ID,
        name,
        sizeBytes: bytes.length,
        crc32: crc32(bytes),
        sha256: undefined,
        sentMs: SENT_MS,
        contentType: undefined,
      };
      chat.set(fileId, file);
      return file;
    },
  };
}

async function storeFile(
  storage: FileStorage,
  key: { owner: string; fileId: string },
  bytes: Buffer,
): Promise<void> {
  await storage.create(key);
  const lease = await storage.lease(key);
  writeSync(lease.fd, bytes, 0, bytes.length, 0);
  await lease.release();
  await storage.publish(key, bytes.length);
}
