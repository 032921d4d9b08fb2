/** Breaks of one gateway, with the alerts that must fire. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { callTool, expectOk, mcpLogin, newKey, request, signUp, updateKey } from '../../kit/agent.ts';
import { NO_FILE_LIMITS } from '../../kit/launch.ts';
import { initUpload, uploadPart } from '../../kit/upload-client.ts';
import { DATA_FILE } from '../../src/actors/runtime/journal/file.ts';
import { LEVEL_RULES } from '../dashboards/service-levels.ts';
import { type Break, get, MODULE_KEY, NOWHERE, PLANTED, push } from './stage.ts';

const level = (name: string) =>
  LEVEL_RULES.filter(({ runbook }) => runbook === name).map(({ alert }) => alert);
/** Longer than a tick of the event loop may take, and short for a client. */
const HALT_MS = 400;
const COMMIT_MS = 500;
const once = (act: () => Promise<unknown>) => {
  let done: Promise<unknown> | undefined;
  return () => {
    done ??= act();
    return done;
  };
};

export const GATEWAY_BREAKS: readonly Break[] = [
  {
    title: 'the gateway is killed',
    alerts: ['GatehouseDown'],
    async set(stage) {
      const gateway = await stage.gateway();
      return { targets: [gateway.internal], act: once(() => gateway.kill()) };
    },
  },
  {
    title: 'a module is down',
    alerts: [...level('GatehouseAvailability'), 'GatehouseModulesFail', 'GatehouseBreakerOpen'],
    async set(stage) {
      const core = { url: NOWHERE, public: ['/core/v1'] };
      const { url, internal } = await stage.gateway({ configuration: { Modules: { core } } });
      return { targets: [internal], act: () => get(`${url}/core/v1/thing/read`) };
    },
  },
  {
    title: 'the process is halted again and again',
    alerts: ['GatehouseEventLoopBlocked'],
    async set(stage) {
      const { internal, process } = await stage.gateway();
      return {
        targets: [internal],
        async act() {
          process.kill('SIGSTOP');
          await wait(HALT_MS);
          process.kill('SIGCONT');
        },
      };
    },
  },
  {
    title: 'a receiver of webhooks answers after eight seconds',
    alerts: [...level('GatehouseWebhookDelay'), 'GatehouseWebhooksLate'],
    async set(stage) {
      const receiver = await stage.server((_request, response) => {
        const timer = setTimeout(() => response.end(), 8_000);
        stage.defer(() => clearTimeout(timer));
      });
      const core = { url: NOWHERE, key: MODULE_KEY };
      const gateway = await stage.gateway({ configuration: { Modules: { core } } });
      const { userId, cookie } = await signUp(gateway.url);
      const body = { name: 'Slow', url: 'https://app.example', webhookUrl: `${receiver}/hook` };
      const headers = { Cookie: cookie };
      expectOk('app', await request(`${gateway.url}/auth/v1/app/upsert_usr_app`, { headers, body }));
      return { targets: [gateway.internal], act: once(() => push(gateway, userId, 100, 'late')) };
    },
  },
  {
    title: 'more event streams are opened than the gateway may have',
    alerts: ['GatehouseBoundReached'],
    async set(stage) {
      const configuration = { Settings: { ...NO_FILE_LIMITS, SseStreamsMax: 1 } };
      const { url, internal } = await stage.gateway({ configuration });
      const [first, second] = [await signUp(url), await signUp(url)];
      const { host } = new URL(url);
      const open = (cookie: string) =>
        stage.socket(url, `GET /auth/v1/events HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\n\r\n`);
      open(first.cookie);
      return { targets: [internal], act: async () => open(second.cookie) };
    },
  },
  {
    title: 'more connections are opened than the gateway may have',
    alerts: ['GatehouseConnectionsRefused'],
    async set(stage) {
      const configuration = { Settings: { ...NO_FILE_LIMITS, ConnectionsMax: 10 } };
      const { url, internal } = await stage.gateway({ configuration });
      return {
        targets: [internal],
        async act() {
          for (let count = 0; count < 20; count += 1) stage.socket(url, 'G');
        },
      };
    },
  },
  {
    title: 'ambiguous requests arrive',
    alerts: ['GatehouseSmuggling'],
    async set(stage) {
      const { url, internal } = await stage.gateway();
      const text =
        'POST /auth/v1/info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc';
      return { targets: [internal], act: async () => stage.socket(url, text) };
    },
  },
  {
    title: 'bytes of the journal have changed',
    alerts: ['GatehouseJournalDamaged'],
    async set(stage) {
      const dataPath = mkdtempSync(join(tmpdir(), 'gatehouse-damaged-'));
      stage.defer(() => rmSync(dataPath, { recursive: true, force: true }));
      const gateway = await stage.gateway({ dataPath });
      const keys = Array.from({ length: 20 }, newKey);
      for (const key of keys) await signUp(gateway.url, key);
      await gateway.stop();
      const file = join(dataPath, DATA_FILE);
      const bytes = readFileSync(file);
      for (const { publicKey } of keys)
        for (let at = bytes.indexOf(publicKey); at >= 0; at = bytes.indexOf(publicKey, at + 1))
          bytes[at + 4] = (bytes[at + 4] ?? 0) ^ 1;
      return {
        targets: [gateway.internal],
        act: once(async () => {
          writeFileSync(file, bytes);
          const port = Number(new URL(gateway.url).port);
          const args = ['--internal-port', new URL(gateway.internal).port];
          await stage.gateway({ dataPath, port, args });
        }),
      };
    },
  },
  {
    title: 'the disk takes half a second for each commit',
    alerts: ['GatehouseJournalBehind', ...level('GatehouseToolCalls')],
    async set(stage) {
      const { url, internal, process } = await stage.gateway();
      const person = await signUp(url);
      expectOk('key', await updateKey(url, person, { mcpAccess: true }));
      const login = expectOk('login', await mcpLogin(url, person.key, Date.now()));
      const bearer = String(login.json['result']?.['sessionId']);
      const slow = once(async () => stage.slowDisk(process, COMMIT_MS));
      return {
        targets: [internal],
        async act() {
          await slow();
          // A destructive call waits until its audit record is on disk.
          const calls = Array.from({ length: 4 }, () =>
            callTool(url, bearer, 'close_sessions', { others: true }).catch(() => undefined),
          );
          const others = Array.from({ length: 100 }, () => signUp(url).catch(() => undefined));
          await Promise.all([...calls, ...others]);
        },
      };
    },
  },
  {
    title: 'the storage server has no room',
    alerts: ['GatehouseStorageFull'],
    async set(stage) {
      const Host = await stage.server((incoming, response) => {
        incoming.resume().on('end', () => response.writeHead(507).end());
      });
      const { url, internal } = await stage.gateway({
        args: ['--sandbox'],
        configuration: { FileServers: { '0': { Host } } },
      });
      const uploader = { url, cookie: (await signUp(url)).cookie };
      const bytes = Buffer.alloc(1_000, 7);
      return {
        targets: [internal],
        async act() {
          bytes.writeUInt32LE((bytes.readUInt32LE(0) + 1) >>> 0, 0);
          const opened = await initUpload(uploader, bytes);
          if (opened.status === 200) await uploadPart(uploader, bytes, 0).catch(() => undefined);
        },
      };
    },
  },
  {
    title: 'threads end when they verify a signature',
    alerts: ['GatehouseWorkersDie'],
    async set(stage) {
      const { url, internal } = await stage.gateway({
        nodeArgs: ['--require', PLANTED],
        environment: { PLANTED: 'thread' },
      });
      return { targets: [internal], act: () => signUp(url).catch(() => undefined) };
    },
  },
  {
    title: 'a module answers polls for its events with 500',
    alerts: ['GatehouseEventFeedsFail'],
    async set(stage) {
      const url = await stage.server((_request, response) => response.writeHead(500).end());
      const core = { url, poll: true };
      const { internal } = await stage.gateway({ configuration: { Modules: { core } } });
      return { targets: [internal] };
    },
  },
  {
    title: 'no collector of traces answers',
    alerts: ['GatehouseRecordsDropped'],
    async set(stage) {
      const Telemetry = { url: NOWHERE, sampleRatio: 1 };
      const { url, internal } = await stage.gateway({ configuration: { Telemetry } });
      return { targets: [internal], act: () => get(`${url}/auth/v1/info`) };
    },
  },
];
