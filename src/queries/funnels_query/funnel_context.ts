import type { QueryProject } from '../query_kind.ts';

/** What a funnel depends on besides its query. */
export interface FunnelContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** The time of the project's first event; required if the range starts with it. */
  readonly earliest: Date | null;
}
