/** An error of a parser as plain data: its class would be lost on the way. */
export interface TransferredError {
  readonly name: string;
  readonly message: string;
  /** The type of a DestinationError. */
  readonly type: string | null;
}

/** To a process. */
export type ToProcess =
  | { readonly type: 'parse'; readonly parser: string; readonly input: unknown }
  | { readonly type: 'open'; readonly stream: number; readonly reader: string; readonly input: unknown }
  /** What a stream asked for; null at the end of its source. */
  | { readonly type: 'chunk'; readonly stream: number; readonly bytes: Uint8Array | null }
  /** The items have been consumed. */
  | { readonly type: 'more'; readonly stream: number }
  | { readonly type: 'close'; readonly stream: number };

/** Of a stream. After `closed` it sends nothing. */
export type FromStream =
  | { readonly type: 'need'; readonly stream: number }
  | { readonly type: 'items'; readonly stream: number; readonly items: unknown }
  | { readonly type: 'done'; readonly stream: number }
  | { readonly type: 'failed'; readonly stream: number; readonly error: TransferredError }
  | { readonly type: 'closed'; readonly stream: number };

/** From a process. */
export type FromProcess =
  | FromStream
  /** The first message: it has started, which no deadline counts. */
  | { readonly type: 'ready' }
  | { readonly type: 'parsed'; readonly output: unknown }
  | { readonly type: 'not_parsed'; readonly error: TransferredError };
