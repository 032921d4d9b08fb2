/** Loaded into a gateway with --require: it admits requests however long ago its lease was renewed, until that is refused. */
const { NodeLease } =
  require('../../../src/actors/runtime/replication/lease.js') as typeof import('../../../src/actors/runtime/replication/lease.ts');

const renewed = new WeakSet<object>();
const { renewed: renew, end } = NodeLease.prototype;

Object.assign(NodeLease.prototype, {
  renewed(this: InstanceType<typeof NodeLease>, sent: Parameters<typeof renew>[0]) {
    renewed.add(this);
    renew.call(this, sent);
  },
  end(this: InstanceType<typeof NodeLease>) {
    renewed.delete(this);
    end.call(this);
  },
});
Object.defineProperty(NodeLease.prototype, 'runs', {
  get(this: object) {
    return renewed.has(this);
  },
});
