/** The part of the tour that calls tools of every group: markets, rooms, orders, payments and chat, codes included. */
import { randomUUID } from 'node:crypto';
import type { Answer } from '../kit/agent.ts';
import { type Expectation, type Guide, StepFailed } from './guide.ts';
import { CURRENCY, callTool, type Learning, listOf, text, toolJson } from './steps.ts';

const PAIR = 'GATE-DEMO';
/** A card number that tests use everywhere; the sandbox's terminal accepts it. */
const CARD = { cardNumber: '4242 4242 4242 4242', expiry: '09/31', cvc: '123' };

/** With the session of a person who has demo money. */
export async function everyGroup(guide: Guide, bearer: string): Promise<void> {
  const call = (name: string, values: object, learn?: Learning) =>
    toolResult(guide, bearer, name, values, learn);
  guide.title('Gateway tools: who is logged in?');
  await call('sessions', {});
  guide.title('Markets: what would a swap give?');
  const swap = { from: CURRENCY, to: 'GATE', amount: '10' };
  const quote = await call('market_swap_info', swap);
  await call('market_create_swap', { ...swap, receiveMin: field(quote, 'receive') });
  guide.title('Trading rooms and orders: a room, an order in it, and the room closed again');
  const room = await call('room_create', { name: 'Tour', pair: PAIR });
  const roomId = field(room, 'id');
  const order = { pair: PAIR, side: 'sell', price: '1000.00', amount: '1', roomId };
  await call('market_create_order', order);
  await call('room_close', { roomId });
  const orders = await call('market_get_orders', { roomId });
  if (text(listOf(toolJson(orders)['result']?.['orders'])[0], 'state') !== 'cancelled')
    throw new StepFailed('the order of a closed room is not cancelled');
  await payments(guide, bearer);
  await chats(guide, bearer);
}

async function payments(guide: Guide, bearer: string): Promise<void> {
  guide.title('Payment orders: a merchant asks for money and gets a code');
  const asked = { currency: CURRENCY, amount: '3.00', description: 'the tour' };
  const order = await toolResult(guide, bearer, 'payorder_create', asked, (answer) => [
    field(answer, 'code'),
  ]);
  const headers = { 'X-MCP-Code': field(order, 'code') };
  guide.title('Payment gate: the holder of the code pays, without an account');
  await withCode(guide, headers, 'payment_order_info', {});
  const paid = await withCode(guide, headers, 'payment_pay_card', CARD);
  if (field(paid, 'state') !== 'completed') throw new StepFailed('the payment is not completed');
}

async function chats(guide: Guide, bearer: string): Promise<void> {
  guide.title('Chat: a group, a message, and the code that invites to it');
  const group = await toolResult(guide, bearer, 'chat_create', { name: 'Tour' });
  const chatId = field(group, 'id');
  await toolResult(guide, bearer, 'chat_send_message', { chatId, text: 'Hello from the tour' });
  const codeOf = (answer: Answer) => text(listOf(toolJson(answer)['result']?.['invites'])[0], 'code');
  const invites = await toolResult(guide, bearer, 'chat_invites', {}, (answer) => [codeOf(answer)]);
  guide.title('Anonymous chat: a guest with the code writes, told apart by the device');
  const headers = { 'X-MCP-Code': codeOf(invites), 'X-Device-Guid': randomUUID() };
  await withCode(guide, headers, 'chat_anon_send_message', { text: 'Hello from a guest', name: 'Guest' });
  const seen = await toolResult(guide, bearer, 'chat_messages', { chatId });
  if (text(listOf(toolJson(seen)['result']?.['messages'])[0], 'text') !== 'Hello from a guest')
    throw new StepFailed('the message of the guest did not arrive');
}

function toolResult(
  guide: Guide,
  bearer: string,
  name: string,
  values: object,
  learn?: Learning,
): Promise<Answer> {
  return callTool(guide, bearer, name, values, isResult, learn);
}

function withCode(
  guide: Guide,
  headers: Record<string, string>,
  name: string,
  values: object,
): Promise<Answer> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: values } };
  return guide.ask({ path: '/mcp', headers, body }, isResult);
}

const isResult: Expectation = (answer, fail) => {
  if (answer.json['error'] !== undefined) fail(`error ${text(answer.json, 'error', 'message')}`);
  if (answer.json['result']?.['isError'] !== undefined) fail('the tool says isError');
};

function field(answer: Answer, name: string): string {
  return text(toolJson(answer), 'result', name);
}
