/** Content of commands, queries and their answers: between nodes they travel as plain data (decision 0220). */
import t from 'tap';
import type { user } from '../../src/actors/accounts/user.ts';
import type { mcpServer } from '../../src/actors/admin/mcp-server.ts';
import type { settings } from '../../src/actors/admin/settings.ts';
import type { staff } from '../../src/actors/admin/staff.ts';
import type { app } from '../../src/actors/apps/app.ts';
import type { deliveryLog } from '../../src/actors/apps/delivery-log.ts';
import type { codeSender } from '../../src/actors/codes/code-sender.ts';
import type { oneTimeCodes } from '../../src/actors/codes/one-time-codes.ts';
import type { upload } from '../../src/actors/files/v1/upload.ts';
import type { uploadSlots } from '../../src/actors/files/v1/upload-slots.ts';
import type { draft } from '../../src/actors/files/v2/draft.ts';
import { KINDS } from '../../src/actors/kinds.ts';

type Scalar = string | number | bigint | boolean | null | undefined | Uint8Array | Date;
type NeverPlain =
  | ((...given: never[]) => unknown)
  | symbol
  | ReadonlyMap<never, unknown>
  | ReadonlySet<never>
  | Promise<unknown>;
/** The same type, with `never` in the place of what is no plain data. */
type PlainOf<T> = T extends Scalar ? T : T extends NeverPlain ? never : { [K in keyof T]: PlainOf<T[K]> };
type IsPlain<T> = [T] extends [PlainOf<T>] ? true : false;

interface Defined<P> {
  readonly protocol?: P;
}
type Carried<Kind> =
  Kind extends Defined<infer P>
    ? P extends { command: infer C; replies: infer R; query: infer Q; results: infer S }
      ? { readonly commands: C; readonly replies: R; readonly queries: Q; readonly results: S }
      : never
    : never;
type Checked<Kind> = { readonly [K in keyof Carried<Kind>]: IsPlain<Carried<Kind>[K]> };

const PLAIN = { commands: true, replies: true, queries: true, results: true } as const;

/** Does not compile when anything of a kind is no plain data. */
const CHECKED: {
  readonly app: Checked<typeof app>;
  readonly codeSender: Checked<typeof codeSender>;
  readonly oneTimeCodes: Checked<typeof oneTimeCodes>;
  readonly deliveryLog: Checked<typeof deliveryLog>;
  readonly draft: Checked<typeof draft>;
  readonly mcpServer: Checked<typeof mcpServer>;
  readonly settings: Checked<typeof settings>;
  readonly staff: Checked<typeof staff>;
  readonly upload: Checked<typeof upload>;
  readonly uploadSlots: Checked<typeof uploadSlots>;
  readonly user: Checked<typeof user>;
} = {
  app: PLAIN,
  codeSender: PLAIN,
  oneTimeCodes: PLAIN,
  deliveryLog: PLAIN,
  draft: PLAIN,
  mcpServer: PLAIN,
  // The value of a setting as it came in a JSON body, before it is checked.
  settings: { ...PLAIN, commands: false },
  staff: PLAIN,
  upload: PLAIN,
  uploadSlots: PLAIN,
  user: PLAIN,
};

t.test('protocols: the check of plain data takes what travels and nothing else', async (t) => {
  const plain: IsPlain<{ a?: string; b: readonly (number | null)[]; c: Uint8Array; d: { e: Date }[] }> = true;
  const others: [
    IsPlain<{ a: () => void }>,
    IsPlain<{ a: { b: Set<string> }[] }>,
    IsPlain<{ a: Map<string, string> }>,
    IsPlain<URL>,
    IsPlain<{ a: unknown }>,
  ] = [false, false, false, false, false];
  t.same([plain, ...others], [true, false, false, false, false, false]);
});

t.test('protocols: every kind is checked', async (t) => {
  t.equal(Object.keys(CHECKED).length, KINDS.length);
});
