import type { StreamType } from '../domain/event.ts';

/** A stored event with its position in the journal. */
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
