/** The log in PostgreSQL: the contract of logs, and what a node says of itself. */
import t from 'tap';
import { ROW_VERSION } from '../../../src/actors/runtime/replication/entry.ts';
import { testLogContract } from '../../support/actors/log-contract.ts';
import { openPgFixture, pgTest } from '../../support/cluster/pg-fixture.ts';
import { sharedPostgres } from '../../support/cluster/postgres.ts';

const postgres = await sharedPostgres(t);
if (typeof postgres !== 'string')
  testLogContract(t, 'PostgreSQL', async (t) => {
    const fixture = await openPgFixture(t, postgres);
    return {
      connect: () => fixture.connect(),
      async passLease() {
        fixture.alive = false;
      },
    };
  });

pgTest(
  'PostgreSQL: a node says which rows it applies from its entry on',
  async (t, { connect, database }) => {
    const log = await connect();
    const readsRows = async () => (await log.nodes()).map(({ figures }) => figures?.readsRows);
    const asEarlierProgram = () => database.script('update gatehouse.node set figures = null');
    const { incarnation } = await log.enter('a');
    t.same(await readsRows(), [ROW_VERSION], 'a new node');
    await asEarlierProgram();
    const again = await log.enter('a', incarnation);
    t.same(await readsRows(), [ROW_VERSION], 'the program after an earlier one');
    await log.join({ ...again, nodeSeq: 1, body: Buffer.from('body') });
    await asEarlierProgram();
    await log.renew(again.node, again.incarnation, 0);
    t.same(await readsRows(), [ROW_VERSION]);
  },
);
