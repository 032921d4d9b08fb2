import t from 'tap';
import { Departure } from '../../src/actors/departure.ts';
import { KINDS } from '../../src/actors/kinds.ts';
import { createRoutedSystem, ownerUnavailable, type RemoteReply } from '../../src/actors/routed-system.ts';
import type { ActorSystem } from '../../src/actors/runtime/actor.ts';
import { NotOwner } from '../../src/actors/runtime/not-owner.ts';
import { nodeSchedule } from '../../src/actors/runtime/runtime-context.ts';
import { GatewayError } from '../../src/domain/errors.ts';
import { actorVerbs, RemoteActors } from '../../src/io/cluster/actor-calls.ts';
import { packFrame, unpackFrame } from '../../src/io/cluster/frames.ts';
import type { Verbs } from '../../src/io/cluster/rpc.ts';
import { account } from '../support/actors/account-kind.ts';
import { createTestActors, type TestActors } from '../support/actors/actors.ts';

interface Node {
  readonly actors: TestActors;
  readonly routed: ActorSystem;
  readonly verbs: Verbs;
  /** Positions that this node has waited for. */
  readonly waited: number[];
  /** Set by a test: what a wait for a position resolves with. */
  applied: Promise<void>;
}

interface Cluster {
  readonly nodes: Readonly<Record<number, Node>>;
  /** Owner of each actor as each node knows it; of the others it is node 1. */
  readonly owners: Map<string, number>;
  /** Calls between nodes, as `2 ask`. */
  readonly calls: string[];
  at(node: number): Node;
}

const POSITION = 77;

/** A node to which node 1 owns everything. */
const routingOf = (node: number) => ({
  node,
  departure: new Departure(nodeSchedule),
  ownerOf: () => 1,
  appliedAtLeast: async () => {},
});

/** Returns a value as it is after it has travelled. */
const travelled = (value: unknown) => unpackFrame(packFrame(value).subarray(4));

/** Two nodes with actors of their own. `known`: the owner of an actor as the node knows it. */
function createCluster(): Cluster {
  const owners = new Map<string, number>();
  const calls: string[] = [];
  const nodes: Record<number, Node> = {};
  const ownerAt = (node: number, id: string) => owners.get(`${node} ${id}`) ?? owners.get(id) ?? 1;
  const call = async (node: number, verb: string, ...args: readonly unknown[]): Promise<RemoteReply> => {
    calls.push(`${node} ${verb}`);
    const answerer = nodes[node];
    if (answerer === undefined) throw ownerUnavailable();
    try {
      const run = answerer.verbs[verb];
      return { position: POSITION, value: travelled(await run?.(...(travelled(args) as unknown[]))) };
    } catch (error) {
      if (error instanceof GatewayError) return { position: POSITION, error };
      throw error;
    }
  };
  for (const node of [1, 2]) {
    const actors = createTestActors({ kinds: [account] });
    const waited: number[] = [];
    const entry: Node = {
      actors,
      waited,
      applied: Promise.resolve(),
      verbs: actorVerbs({
        local: actors.system,
        kinds: [account],
        owns: (_kind, id) => ownerAt(node, id) === node,
        admit: () => undefined,
      }),
      routed: createRoutedSystem({
        local: actors.system,
        remote: new RemoteActors(call),
        routing: {
          node,
          departure: routingOf(node).departure,
          ownerOf: (_kind, id) => ownerAt(node, id),
          appliedAtLeast(position) {
            waited.push(position);
            return entry.applied;
          },
        },
        kinds: KINDS,
      }),
    };
    nodes[node] = entry;
  }
  const at = (node: number) => {
    const found = nodes[node];
    if (found === undefined) throw new TypeError(`no node ${node}`);
    return found;
  };
  return { nodes, owners, calls, at };
}

t.test('routed system: what this node owns is handled here', async (t) => {
  const { at, calls } = createCluster();
  const { routed, waited } = at(1);
  t.equal(await routed.ask(account, 'a', { type: 'deposit', amount: 5 }), 5);
  t.match(routed.query(account, 'a', { type: 'state' }), { balance: 5 }, 'without a promise');
  t.equal(routed.remembers(account, 'a', 'key'), false);
  await routed.tell(account, 'a', { type: 'receive', text: 'hello' });
  t.same([calls, waited], [[], []]);
});

// covers C12
t.test('routed system: the rest is handled by its owner', async (t) => {
  const { at, calls } = createCluster();
  const { routed, actors } = at(2);
  t.equal(await routed.ask(account, 'a', { type: 'deposit', amount: 5 }), 5);
  t.match(await routed.query(account, 'a', { type: 'state' }), { balance: 5 });
  await routed.tell(account, 'a', { type: 'receive', text: 'hello' });
  await at(1).actors.settle();
  t.match(await at(1).routed.query(account, 'a', { type: 'state' }), { received: ['hello'] });
  t.same(calls, ['1 ask', '1 query', '1 tell']);
  t.notOk(actors.system.exists(account, 'a'), 'nothing was written here');
});

t.test('routed system: a repeat is recognised wherever it arrives', async (t) => {
  const { at } = createCluster();
  const deposit = { type: 'deposit', amount: 5 } as const;
  const options = { idempotencyKey: 'key', fingerprint: 'five' };
  t.equal(await at(2).routed.ask(account, 'a', deposit, options), 5);
  t.equal(await at(1).routed.ask(account, 'a', deposit, options), 5);
  t.equal(await at(2).routed.ask(account, 'a', deposit, options), 5);
  t.equal(await at(2).routed.remembers(account, 'a', 'key'), true);
  t.equal(await at(2).routed.remembers(account, 'a', 'other'), false);
  await t.rejects(
    at(2).routed.ask(account, 'a', deposit, { ...options, fingerprint: 'six' }),
    new GatewayError('IdempotencyKeyReused'),
  );
});

// covers C12
t.test(
  'routed system: an answer waits until this node has applied what it says, a query does not',
  async (t) => {
    const { at } = createCluster();
    const node = at(2);
    let apply = () => {};
    node.applied = new Promise((resolve) => {
      apply = resolve;
    });
    const events: string[] = [];
    const asked = node.routed
      .ask(account, 'a', { type: 'deposit', amount: 1 })
      .then(() => events.push('answered'));
    const refused = node.routed
      .ask(account, 'a', { type: 'withdraw', amount: 9 })
      .catch(({ row }: GatewayError) => events.push(row));
    await node.actors.settle();
    t.match(await node.routed.query(account, 'a', { type: 'state' }), { balance: 1 });
    t.same(events, []);
    apply();
    await Promise.all([asked, refused]);
    t.same(events.sort(), ['InvalidInput', 'answered']);
    t.same(node.waited, [POSITION, POSITION]);
  },
);

t.test('routed system: an answer whose position never comes is a failure of its own', async (t) => {
  const node = createCluster().at(2);
  node.applied = Promise.reject(new GatewayError('Stopping'));
  node.applied.catch(() => undefined);
  await t.rejects(node.routed.ask(account, 'a', { type: 'stamp' }), new GatewayError('Stopping'));
});

t.test('routed system: refusals and bugs of the owner are those of a single machine', async (t) => {
  const { routed } = createCluster().at(2);
  await t.rejects(routed.ask(account, 'a', { type: 'refuse' }), new GatewayError('Forbidden'));
  await t.rejects(
    routed.ask(account, 'a', { type: 'withdraw', amount: 1 }),
    new GatewayError('InvalidInput', 'amount'),
  );
  await t.rejects(routed.ask(account, 'a', { type: 'crash' }), new GatewayError('InternalError'));
});

t.test(
  'routed system: an owner that has changed is asked again, once, after its change is known here',
  async (t) => {
    const { at, owners, calls } = createCluster();
    const { routed, waited } = at(2);
    owners.set('1 a', 2);
    t.equal(
      await settleWith(routed.ask(account, 'a', { type: 'deposit', amount: 1 })),
      'Overloaded',
      'both nodes point at the other',
    );
    t.same(calls, ['1 ask', '1 ask']);
    owners.set('1 a', 1);
    calls.length = 0;
    owners.set('1 b', 2);
    const asked = routed.ask(account, 'b', { type: 'deposit', amount: 3 });
    owners.set('2 b', 2);
    t.equal(await asked, 3, 'it is this node');
    t.same(calls, ['1 ask']);
    t.equal(waited.at(-1), POSITION);
    t.ok(at(2).actors.system.exists(account, 'b'));
    t.notOk(at(1).actors.system.exists(account, 'b'), 'nothing happened at the other');
  },
);

t.test(
  'routed system: a partition that leaves in the middle of a turn is asked for at its new owner',
  async (t) => {
    const { at, owners } = createCluster();
    const [here, there] = [at(2), at(1)];
    owners.set('2 a', 2);
    let asked = 0;
    const local: ActorSystem = Object.create(here.actors.system, {
      ask: {
        value: () => {
          asked += 1;
          owners.delete('2 a');
          return Promise.reject(new NotOwner());
        },
      },
    }) as ActorSystem;
    const routed = createRoutedSystem({
      local,
      remote: new RemoteActors(async (_node, verb, ...args) => ({
        position: POSITION,
        value: await there.verbs[verb]?.(...args),
      })),
      routing: { ...routingOf(2), ownerOf: (_kind, id) => owners.get(`2 ${id}`) ?? 1 },
      kinds: KINDS,
    });
    t.equal(await routed.ask(account, 'a', { type: 'deposit', amount: 4 }), 4);
    t.equal(asked, 1);
  },
);

t.test(
  'routed system: without an owner, or a link to it, everything is 503 with a second to wait',
  async (t) => {
    const { at, owners } = createCluster();
    const { routed } = at(1);
    for (const owner of [0, 9]) {
      owners.set('a', owner);
      const rejected = (promise: unknown) => t.rejects(promise as Promise<unknown>, ownerUnavailable());
      await rejected(routed.ask(account, 'a', { type: 'stamp' }));
      await rejected(routed.query(account, 'a', { type: 'state' }));
      await rejected(routed.remembers(account, 'a', 'key'));
      await rejected(routed.tell(account, 'a', { type: 'receive', text: 'x' }));
      t.throws(() => routed.now(account, 'a', { type: 'hit' }), ownerUnavailable());
    }
    t.match(ownerUnavailable(), { row: 'Overloaded', retryAfterSeconds: 1 });
  },
);

t.test('routed system: names, counts and audit records are those of this node', async (t) => {
  const { at } = createCluster();
  await at(1).routed.ask(account, 'a', { type: 'claim', name: 'n' });
  t.equal(at(1).routed.lookup('publicKey', 'n'), 'owner-0');
  t.equal(at(2).routed.lookup('publicKey', 'n'), undefined);
  t.same([at(1).routed.count('publicKey'), at(2).routed.count('publicKey')], [1, 0]);
  t.same([at(1).routed.exists(account, 'a'), at(2).routed.exists(account, 'a')], [true, false]);
  const record = { utcMs: 1, event: 'login', userId: null, fields: {} } as const;
  at(2).routed.audit(record);
  at(2).routed.auditRefusal(record, '192.0.2.1');
  await at(2).routed.auditFirst(record);
  t.equal(at(2).actors.journal.auditPage(0, 10).length, 3);
});

// covers C1
t.test('routed system: session checks are answered by the replica, of any account', async (t) => {
  const seen: string[] = [];
  const local = {
    now: (kind: { kind: string }, id: string, { type }: { type: string }) => {
      seen.push(`${kind.kind} ${id} ${type}`);
      return true;
    },
  } as unknown as ActorSystem;
  const remote = new RemoteActors(async () => ({ position: 0, value: undefined }));
  const routing = routingOf(2);
  const routed = createRoutedSystem({ local, remote, routing, kinds: KINDS });
  const [user, upload] = ['user', 'upload'].map((name) => KINDS.find(({ kind }) => kind === name));
  if (user === undefined || upload === undefined) throw new TypeError('no such kind');
  routed.now(user, '1', { type: 'checkSession' } as never);
  t.same(seen, ['user 1 checkSession']);
  t.throws(
    () => routed.now(upload, '1', { type: 'findPosition' } as never),
    ownerUnavailable(),
    'the owner alone',
  );
});

t.test('routed system: a kind whose volatile commands have no place stops the start', async (t) => {
  const { at } = createCluster();
  const options = {
    local: at(1).actors.system,
    remote: new RemoteActors(async () => ({ position: 0, value: undefined })),
    routing: routingOf(1),
  };
  t.throws(
    () => createRoutedSystem({ ...options, kinds: [account] }),
    new TypeError('account.hit: no node is named that handles it in a cluster'),
  );
  t.ok(createRoutedSystem({ ...options, kinds: KINDS }));
});

t.test('routed system: a node that must answer nothing refuses before an actor is asked', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  const verbs = actorVerbs({
    local: system,
    kinds: [account],
    owns: () => true,
    admit: () => {
      throw new GatewayError('Stopping');
    },
  });
  for (const verb of ['ask', 'query', 'tell', 'remembers'])
    t.throws(() => verbs[verb]?.('account', 'a', { type: 'stamp' }), new GatewayError('Stopping'), verb);
  t.notOk(system.exists(account, 'a'));
});

t.test('routed system: calls that no node of this version makes are refused as bugs', async (t) => {
  const { system } = createTestActors({ kinds: [account] });
  const verbs = actorVerbs({ local: system, kinds: [account], owns: () => true, admit: () => undefined });
  t.throws(() => verbs['ask']?.('nothing', 'a', { type: 'stamp' }), TypeError);
  t.throws(() => verbs['ask']?.('account', 7, { type: 'stamp' }), TypeError);
  t.throws(() => verbs['query']?.('account', 'a', null), TypeError);
  t.throws(() => verbs['tell']?.('account', 'a', { type: 7 }), TypeError);
});

/** The row of the refusal, or the value. */
async function settleWith(promise: Promise<unknown>): Promise<unknown> {
  try {
    return await promise;
  } catch (error) {
    return error instanceof GatewayError ? error.row : error;
  }
}
