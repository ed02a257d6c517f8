import type { QueryProject } from '../query_kind.ts';

/** What a funnel is asked about beside its query. */
export interface FunnelContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** When the project's first event was; needed where the range begins with it. */
  readonly earliest: Date | null;
}
