/**
 * Errors of the sandbox modules (docs/sandbox.md), in the envelope `{"error":{"code","message"}}`. Codes: 2001
 * common, 2100 wallet, 2200 chat, 2300 markets, 2400 payments, 2500 contacts.
 */

interface SandboxErrorRow {
  readonly code: number;
  readonly status: number;
  readonly message: string;
}

export const SANDBOX_ERRORS = {
  Unauthorized: { code: 2001, status: 401, message: 'X-Crm is missing or no user id' },
  BadRequest: { code: 2002, status: 400, message: 'Bad request' },
  NotFound: { code: 2003, status: 404, message: 'Not found' },
  MethodNotAllowed: { code: 2004, status: 405, message: 'Method not allowed' },
  BodyTooLarge: { code: 2005, status: 413, message: 'Body too large' },
  UnsupportedMediaType: { code: 2006, status: 415, message: 'Content-Type must be application/json' },
  Forbidden: { code: 2007, status: 403, message: 'Forbidden' },
  InjectedFault: { code: 2008, status: 500, message: 'Injected fault' },
  UnknownCode: { code: 2009, status: 404, message: 'Unknown code' },
  UnknownCurrency: { code: 2101, status: 400, message: 'Unknown currency' },
  InsufficientFunds: { code: 2102, status: 409, message: 'Insufficient funds' },
  BadAmount: { code: 2103, status: 400, message: 'Bad amount' },
  UnknownReceiver: { code: 2104, status: 404, message: 'Unknown receiver' },
  SameAccount: { code: 2105, status: 400, message: 'Sender and receiver are the same account' },
  UnknownTransaction: { code: 2106, status: 404, message: 'Unknown transaction' },
  BadAddress: { code: 2107, status: 400, message: 'Bad address' },
  OwnAddress: { code: 2108, status: 409, message: 'The address belongs to this wallet: use a transfer' },
  /** The caller's `externalId` was used for something else. */
  OperationConflict: { code: 2109, status: 409, message: 'externalId was used for another operation' },
  UnknownMessage: { code: 2204, status: 404, message: 'Unknown message' },
  NotYourMessage: { code: 2205, status: 403, message: 'The message is another user’s' },
  MessageDeleted: { code: 2206, status: 409, message: 'The message is deleted' },
  UnknownUser: { code: 2207, status: 404, message: 'Unknown user' },
  NotChatOwner: { code: 2208, status: 403, message: 'Only the owner of the chat may do that' },
  FixedChat: { code: 2209, status: 409, message: 'This chat cannot be changed in that way' },
  BadDevice: { code: 2210, status: 400, message: 'X-Device-Guid is missing or no UUID' },
  ChatFull: { code: 2211, status: 409, message: 'The chat is full' },
  TooManyChats: { code: 2212, status: 409, message: 'Too many chats' },
  UnknownFile: { code: 2213, status: 404, message: 'Unknown file' },
  NoText: { code: 2214, status: 409, message: 'The file has no text to read' },
  UploadCancelled: { code: 2215, status: 409, message: 'The upload was cancelled' },
  UnknownPair: { code: 2301, status: 400, message: 'Unknown pair' },
  RateMoved: { code: 2302, status: 409, message: 'The swap would give less than receiveMin' },
  UnknownOrder: { code: 2303, status: 404, message: 'Unknown order' },
  OrderClosed: { code: 2304, status: 409, message: 'The order is closed' },
  OwnOrder: { code: 2305, status: 409, message: 'The order would meet your own' },
  TooManyOrders: { code: 2306, status: 409, message: 'Too many open orders' },
  UnknownRoom: { code: 2307, status: 404, message: 'Unknown trading room' },
  RoomClosed: { code: 2308, status: 409, message: 'The trading room is closed' },
  NotInRoom: { code: 2309, status: 403, message: 'Not a member of the trading room' },
  NotRoomOwner: { code: 2310, status: 403, message: 'Only its owner closes a trading room' },
  RoomFull: { code: 2311, status: 409, message: 'The trading room is full' },
  TooManyRooms: { code: 2312, status: 409, message: 'Too many open trading rooms' },
  UnknownChat: { code: 2201, status: 404, message: 'Unknown chat' },
  NotAMember: { code: 2202, status: 403, message: 'Not a member of the chat' },
  BadMessage: { code: 2203, status: 400, message: 'Bad message' },
  UnknownPaymentOrder: { code: 2401, status: 404, message: 'Unknown payment order' },
  PaymentOrderExpired: { code: 2402, status: 409, message: 'The payment order has expired' },
  PaymentOrderPaid: { code: 2403, status: 409, message: 'The payment order is paid already' },
  PaymentPending: { code: 2404, status: 409, message: 'Another payment is under way' },
  UnknownPayment: { code: 2405, status: 404, message: 'Unknown payment' },
  NoPendingPayment: { code: 2406, status: 409, message: 'No such payment is under way' },
  UnknownTerminal: { code: 2407, status: 404, message: 'Unknown terminal' },
  WrongTerminal: { code: 2408, status: 400, message: 'The terminal does not fit' },
  BadCard: { code: 2409, status: 400, message: 'Bad card' },
  CardDeclined: { code: 2410, status: 402, message: 'The card was declined' },
  BadTxHash: { code: 2411, status: 400, message: 'Bad transaction hash' },
  CardChanged: { code: 2501, status: 412, message: 'The card is there already, or is another one by now' },
  TooManyCards: { code: 2502, status: 409, message: 'Too many contacts' },
  TxHashUsed: { code: 2412, status: 409, message: 'The transaction has paid another order' },
} as const satisfies Record<string, SandboxErrorRow>;

export type SandboxErrorName = keyof typeof SANDBOX_ERRORS;

/** An expected refusal. `detail` names the field or the bound and is shown to the caller. */
export class SandboxError extends Error {
  readonly row: SandboxErrorRow;

  constructor(name: SandboxErrorName, detail?: string) {
    const row: SandboxErrorRow = SANDBOX_ERRORS[name];
    super(detail === undefined ? row.message : `${row.message}: ${detail}`);
    this.name = 'SandboxError';
    this.row = row;
  }
}

export function errorBody(error: SandboxError): string {
  return JSON.stringify({ error: { code: error.row.code, message: error.message } });
}
