/** Contract, sections 8.2 to 8.4: bandwidth, files and other limits. */
import { type Check, checksOf } from '../check.ts';
import { type Answer, read } from '../client.ts';
import { fileSetting } from '../tables.ts';
import { ceremony, expectOk, newKey, type Person } from '../unshown.ts';
import {
  CHUNK_BYTES,
  cancelUpload,
  crcOf,
  createDraft,
  draftOf,
  initUpload,
  smallFile,
  streamUpload,
  uploadV2,
} from '../uploads.ts';
import { verifiedHeaders, type World } from '../world.ts';

const MIB = 1_024 * 1_024;
/** Bytes a second, and bytes of a file. */
const QUOTA = 100_000;
/** With it the same file takes longer than any run of the contract. */
const SLOW_QUOTA = 100;
/** Least time of the file: a full bucket gives less than half of it at once. */
const LEAST_SECONDS = 0.5;

interface Seconds {
  readonly up: number;
  readonly down: number;
}

interface Figures {
  readonly free: Seconds;
  readonly throttled: Seconds;
  /** The slower of two concurrent users. */
  readonly shared: Seconds;
  /** Requests counted for the session whose streams were throttled. */
  readonly requests: number;
}

async function secondsSince(startMs: number, step: () => Promise<Answer>): Promise<number> {
  expectOk('stream', await step());
  return (performance.now() - startMs) / 1_000;
}

/** Uploads a file and downloads a stored one at the same time. */
async function streams(world: World, { auth }: Person, code: string, bytes: Buffer): Promise<Seconds> {
  const startMs = performance.now();
  const query = { fileName: 'a.bin', fileSize: bytes.length, chatId: 0 };
  const { fileId } = draftOf(await createDraft(world, auth, query));
  const [up, down] = await Promise.all([
    secondsSince(startMs, () => streamUpload(world, auth, fileId, bytes)),
    secondsSince(startMs, () => world.get(`/auth/v2/file/${code}`)),
  ]);
  return { up, down };
}

async function bandwidth(world: World, perSecond: number): Promise<void> {
  await world.setting('FileUploadBytesPerSecond', perSecond);
  await world.setting('FileDownloadBytesPerSecond', perSecond);
}

async function measure(world: World): Promise<Figures> {
  const persons = [await world.person(), await world.person()] as const;
  const bytes = smallFile(QUOTA);
  await bandwidth(world, 0);
  const { fileCode } = await uploadV2(world, persons[0], bytes);
  const remaining = async () => {
    const answer = await world.get('/auth/v1/sessions', persons[0].auth);
    return Number(/r=(\d+)/.exec(answer.header('x-ratelimit'))?.[1]);
  };
  await bandwidth(world, SLOW_QUOTA);
  await bandwidth(world, 0);
  const free = await streams(world, persons[0], fileCode, bytes);
  await bandwidth(world, QUOTA);
  const before = await remaining();
  const throttled = await streams(world, persons[0], fileCode, bytes);
  const requests = before - (await remaining());
  const both = await Promise.all(persons.map((person) => streams(world, person, fileCode, bytes)));
  await bandwidth(world, 0);
  const slower = (direction: 'up' | 'down') => Math.max(...both.map((each) => each[direction]));
  return { free, throttled, shared: { up: slower('up'), down: slower('down') }, requests };
}

const measured = new WeakMap<World, Promise<Figures>>();

/** Measured once for all checks of a world. */
function figures(world: World): Promise<Figures> {
  const known = measured.get(world) ?? measure(world);
  measured.set(world, known);
  return known;
}

const BANDWIDTH: readonly Check[] = [
  ...checksOf('8.2', {
    'at 100,000 bytes/s 100,000 bytes take over half a second in each direction, and count as single requests':
      {
        sentence:
          'The bandwidth limiter is apart from the HTTP limiter. … quotas are bytes per second, refilled each second, and streams of v2 uploads and downloads use it.',
        also: [['4.7', 'The bandwidth limiter slows streams of uploads and downloads.']],
        async run(t, world) {
          const { throttled, requests } = await figures(world);
          for (const [direction, seconds] of Object.entries(throttled))
            t.ok(seconds > LEAST_SECONDS, `${direction} ${seconds} s`);
          // A new window that begins meanwhile starts the count again.
          t.ok(requests <= 4, `${requests} requests`);
        },
      },
  }),
  ...checksOf('8.3', {
    'of two concurrent users one takes a second longer than its own bytes; with 0 the former quota is over': {
      sentence: `${fileSetting('FileDownloadBytesPerSecond')} | The quota that v2 downloads share. 0 is no quota. … ${fileSetting('FileUploadBytesPerSecond')} | The quota that v2 uploads share. 0 is no quota.`,
      async run(t, world) {
        const { free, shared } = await figures(world);
        for (const direction of ['up', 'down'] as const) {
          t.ok(shared[direction] > 1 + LEAST_SECONDS, `shared, ${direction}: ${shared[direction]} s`);
          t.ok(free[direction] < QUOTA / SLOW_QUOTA / 2, `free, ${direction}: ${free[direction]} s`);
        }
      },
    },
  }),
];

const FILES = checksOf('8.3', {
  'with 200 MiB a file of 100 MiB is accepted, one byte more is 1301': {
    sentence: `${fileSetting('FileMaxSizeBytes')} | The largest upload. It cannot exceed 100 MiB.`,
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile();
      await world.setting('FileMaxSizeBytes', 200 * MIB);
      const above = await initUpload(world, auth, bytes, { FileSize: 100 * MIB + 1 });
      t.equal(above.at('error.code'), 1301);
      t.equal((await initUpload(world, auth, bytes, { FileSize: 100 * MIB })).status, 200);
      expectOk('cancel', await cancelUpload(world, auth, crcOf(bytes)));
      await world.setting('FileMaxSizeBytes', 20 * MIB);
    },
  },
  'with exe;bat both extensions are 1309 in both transports, a text file is accepted': {
    sentence: `${fileSetting('FileBlockedExtensions')} | Extensions that are refused, a string with semicolons.`,
    async run(t, world) {
      const { auth } = await world.person();
      await world.setting('FileBlockedExtensions', 'exe;bat');
      const code = async (FileName: string) =>
        (await initUpload(world, auth, smallFile(), { FileName })).at('error.code');
      t.same([await code('a.exe'), await code('b.BAT'), await code('c.txt')], [1309, 1309, undefined]);
      const draft = await createDraft(world, auth, { fileName: 'a.exe', fileSize: 3, chatId: 0 });
      t.equal(draft.at('error.code'), 1309);
      await world.setting('FileBlockedExtensions', '');
    },
  },
  'info returns the chunk size, and a chunk of this size is accepted; a second upload of the user is 1302': {
    sentence: 'Constants: a chunk has 256 KB. … A user has one.',
    async run(t, world) {
      t.equal((await world.get('/auth/v1/info')).at('result.limits.chunkBytes'), CHUNK_BYTES);
      const { auth } = await world.person();
      const bytes = smallFile(CHUNK_BYTES + 1);
      expectOk('init', await initUpload(world, auth, bytes));
      t.equal((await initUpload(world, auth, smallFile())).at('error.code'), 1302);
      const search = `uploadId=${crcOf(bytes)}&chunkNumber=0&chunkCrc32=${crcOf(bytes.subarray(0, CHUNK_BYTES))}`;
      const sending = { headers: auth, bytes: bytes.subarray(0, CHUNK_BYTES) };
      expectOk('part', await world.send('POST', `/auth/v1/file/upload_part?${search}`, sending));
    },
  },
});

const OTHER = checksOf('8.4', {
  'timestamps 290 seconds early or late log in, 310 seconds are refused': {
    sentence: 'The timestamp of an MCP login: 5 minutes either way.',
    also: [
      ['5.1', "The timestamp differs from the server's UTC time by 5 minutes at most."],
      ['7.2', '401 | Challenge expired | The timestamp is more than 5 minutes off'],
    ],
    async run(t, world) {
      const { key } = await world.mcpPerson();
      const seconds = Math.floor(Date.now() / 1_000);
      const login = (off: number) => world.mcpLogin(verifiedHeaders(key, seconds + off));
      for (const off of [-290, 290]) t.equal((await login(off)).status, 200, String(off));
      for (const off of [-310, 310])
        t.match(await login(off), { status: 401, json: { error: { message: 'Challenge expired' } } });
    },
  },
  'with a limit of 2 a third key is refused until one is removed': {
    sentence: 'ActiveKeysLimit is the largest number of active keys of a user.',
    async run(t, world) {
      const person = await world.person();
      const add = async () => {
        const json = await ceremony(world.gateway.url, 'register', newKey(), person.auth);
        return await world.post('/auth/v1/keys/register_key', person.auth, json);
      };
      await world.setting('ActiveKeysLimit', 2);
      const second = expectOk('second', await add());
      t.equal((await add()).status, 409);
      const keyId = read(second.json, 'result.key.id');
      expectOk('remove', await world.post('/auth/v1/keys/remove_key', person.auth, { keyId }));
      t.equal((await add()).status, 200);
      await world.setting('ActiveKeysLimit', 20);
    },
  },
});

export const CHECKS: readonly Check[] = [...BANDWIDTH, ...FILES, ...OTHER];
