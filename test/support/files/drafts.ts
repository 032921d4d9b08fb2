/**
 * The routes of v2 uploads on a free loopback port: real actors over the memory journal, a real folder, the chat module
 * of draft-world.ts, and a gate with two people, an agent and the lesser sessions.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { draft } from '../../../src/actors/files/v2/draft.ts';
import type { WorkerPort } from '../../../src/actors/runtime/ports.ts';
import type { SessionContext } from '../../../src/domain/sessions.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../../src/domain/settings/settings.ts';
import { createFileCodes, type FileCodes } from '../../../src/io/files/download/file-code.ts';
import { filePort } from '../../../src/io/files/storage/actor-port.ts';
import { LocalStorage } from '../../../src/io/files/storage/local.ts';
import type { FileStorage } from '../../../src/io/files/storage/port.ts';
import { Throttle } from '../../../src/io/files/throttle.ts';
import { BodyReceiver } from '../../../src/io/files/upload/receiver.ts';
import { DraftUploads } from '../../../src/io/files/upload/v2-stream.ts';
import type { SessionLookup } from '../../../src/io/http/table/route.ts';
import { createDraftRoutes } from '../../../src/io/routes/files-v2.ts';
import { inlineWorkers } from '../account.ts';
import { createTestActors, type TestActors } from '../actors/actors.ts';
import { type HttpFixture, startHttp } from '../http.ts';
import { sessionOf } from '../mcp.ts';
import { FakeChat } from './draft-world.ts';

export const OWNER_ID = '501';
export const OTHER_ID = '502';
const PERSON: SessionContext = {
  ...sessionOf('McpVerified', OWNER_ID),
  kind: 'browser',
  loginType: null,
};
const SESSIONS: Readonly<Record<string, SessionContext>> = {
  'browser person': PERSON,
  'browser other': { ...PERSON, userId: OTHER_ID },
  'mcp agent': sessionOf('McpVerified', OWNER_ID),
  'mcp basic': sessionOf('McpBasic', OWNER_ID),
  'mcp app': sessionOf('McpApp', OWNER_ID),
};
export const PERSON_HEADERS = { Cookie: 'sid=person' };
export const OTHER_HEADERS = { Cookie: 'sid=other' };

const gate: SessionLookup = {
  authenticate(token, kind) {
    const session = SESSIONS[`${kind} ${token}`];
    return session === undefined ? undefined : { session, quotaResult: undefined };
  },
};

export interface DraftFixture {
  readonly http: HttpFixture;
  readonly actors: TestActors;
  readonly chat: FakeChat;
  readonly storage: FileStorage;
  readonly settings: LiveSettings;
  readonly codes: FileCodes;
  readonly uploads: DraftUploads;
  readonly receiver: BodyReceiver;
  /** Faults of the storage that the operator was notified of. */
  readonly faults: string[];
  create(query?: Readonly<Record<string, string>>): Promise<string>;
  stream(fileId: string, init?: RequestInit): Promise<Response>;
  file(fileId: string): Buffer | undefined;
  names(): string[];
}

export interface DraftFixtureOptions {
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  /** Stands before the storage. */
  readonly storage?: (inner: FileStorage) => FileStorage;
  readonly freeBytes?: number;
  readonly workers?: WorkerPort;
  /** Bounds of bytes that arrive before a body is accepted. */
  readonly prebuffer?: { readonly memoryBytesMax: number; readonly fileBytesMax: number };
}

export async function startDrafts(t: Test, options: DraftFixtureOptions = {}): Promise<DraftFixture> {
  const root = await mkdtemp(join(tmpdir(), 'gatehouse-drafts-'));
  const faults: string[] = [];
  const { freeBytes, prebuffer = {}, workers = inlineWorkers().workers } = options;
  const local = new LocalStorage({
    workers,
    root,
    onFault: (message) => faults.push(message),
    ...(freeBytes === undefined ? {} : { freeSpace: async () => freeBytes }),
  });
  const storage = options.storage?.(local) ?? local;
  const settings = new LiveSettings({ ...NO_LIMITS, FileUploadBytesPerSecond: 0, ...options.settings });
  const chat = new FakeChat();
  const actors = createTestActors({
    kinds: [draft],
    ports: { workers, chatFiles: chat, files: filePort(storage, workers) },
    settings,
  });
  const throttle = new Throttle({
    settings,
    elapsed: () => performance.now(),
    timer: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
  });
  const codes = createFileCodes(Buffer.alloc(16, 7));
  const receiver = new BodyReceiver(workers, { folder: tmpdir(), prebuffer });
  const uploads = new DraftUploads({
    actors: actors.system,
    settings,
    storage,
    receiver,
    throttle,
    workers,
    clock: actors.clock.read,
    timer: actors.clock.timer,
  });
  const http = startHttp({
    routes: createDraftRoutes({ uploads, codes }),
    settings,
    actors: actors.system,
    gate,
    time: actors.clock,
  });
  t.teardown(async () => {
    throttle.close();
    await http.close();
    await storage.close();
    await rm(root, { recursive: true });
  });
  const folder = join(root, OWNER_ID);
  return {
    http,
    actors,
    chat,
    storage,
    settings,
    codes,
    uploads,
    receiver,
    faults,
    async create(query = {}) {
      const fields = new URLSearchParams({ fileName: 'a.bin', ...query });
      const url = `${http.url}/auth/v2/file/create_draft?${fields}`;
      const answer = await fetch(url, { method: 'POST', headers: PERSON_HEADERS });
      const { result } = (await answer.json()) as { result?: string };
      if (result === undefined) throw new Error(`create_draft: ${answer.status}`);
      return result.slice(0, result.indexOf(':'));
    },
    stream(fileId, init = {}) {
      const headers = { ...PERSON_HEADERS, ...(init.headers as Record<string, string> | undefined) };
      return fetch(`${http.url}/auth/v2/file/stream_upload/${fileId}`, { method: 'POST', ...init, headers });
    },
    file(fileId) {
      const path = join(folder, fileId);
      return existsSync(path) ? readFileSync(path) : undefined;
    },
    names: () => (existsSync(folder) ? readdirSync(folder) : []),
  };
}
