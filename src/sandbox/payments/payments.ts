/** The sandbox payments module: payment orders of merchants, and the gate where a holder of their code pays. */
import { toIso } from '../../domain/time.ts';
import type { ModuleCall } from '../call-arguments.ts';
import { opened } from '../codes.ts';
import { endpointOf, type ModuleEndpoint, type SandboxModule } from '../module.ts';
import type { Ledger } from '../wallet/ledger.ts';
import {
  cancelCrypto,
  cancelP2p,
  confirmCrypto,
  gateInfo,
  gateTerminals,
  payCard,
  payCrypto,
  payP2p,
} from './gate.ts';
import { PAYMENTS_ENDPOINTS } from './interface.ts';
import {
  confirmPayment,
  createPaymentOrder,
  getPayment,
  listPayments,
  merchantTerminals,
  paymentOrderInfo,
} from './orders.ts';
import { Payments } from './state.ts';

type Handle = (payments: Payments, call: ModuleCall) => object;

export function createPayments(ledger: Ledger): SandboxModule {
  const payments = new Payments(ledger);
  const endpoint = (
    calledFor: ModuleEndpoint['calledFor'],
    key: keyof typeof PAYMENTS_ENDPOINTS,
    handle: Handle,
  ): ModuleEndpoint =>
    endpointOf('payments', PAYMENTS_ENDPOINTS, key, calledFor, (call) => handle(payments, call));
  return {
    name: 'payments',
    endpoints: [
      endpoint('user', 'POST orders/create', createPaymentOrder),
      endpoint('user', 'GET orders/info', paymentOrderInfo),
      endpoint('user', 'GET terminals/list', merchantTerminals),
      endpoint('user', 'GET payments/list', listPayments),
      endpoint('user', 'GET payments/get', getPayment),
      endpoint('user', 'POST payments/confirm', confirmPayment),
      endpoint('Capability:wallet', 'GET gate/order_info', gateInfo),
      endpoint('Capability:wallet', 'GET gate/terminals', gateTerminals),
      endpoint('Capability:wallet', 'POST gate/pay_card', payCard),
      endpoint('Capability:wallet', 'POST gate/pay_p2p', payP2p),
      endpoint('Capability:wallet', 'POST gate/cancel_p2p', cancelP2p),
      endpoint('Capability:wallet', 'POST gate/pay_crypto', payCrypto),
      endpoint('Capability:wallet', 'POST gate/confirm_crypto', confirmCrypto),
      endpoint('Capability:wallet', 'POST gate/cancel_crypto', cancelCrypto),
      endpoint('gateway', 'GET capability/resolve', resolve),
    ],
    events: payments.events,
    apply: payments.apply,
  };
}

/**
 * Returns the order that a code opens. The code of a paid or expired order still opens it: its holder may read how it ended.
 */
function resolve(payments: Payments, call: ModuleCall): object {
  const { id, expiresMs } = opened(payments.byCode, call);
  return { family: 'wallet', scope: 'payment_order', id, expiresUtc: toIso(expiresMs) };
}
