import type { StreamType } from '../domain/event.ts';

/** An event as it is stored, with its place in the journal. */
export interface StoredEvent {
  readonly global_position: number;
  readonly stream_type: StreamType;
  readonly stream_id: string;
  readonly stream_version: number;
  readonly event_id: string;
  readonly type: string;
  readonly data: object;
  readonly recorded_at: string;
}
