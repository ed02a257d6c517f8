import type { JobOperation } from './jobs/answer_job.ts';
import type { ErrorOf } from './plugins/errors.ts';
import type { ProjectRoutes } from './route_context.ts';

/** What an optional capability adds to the API. It is made in its own folder, with what its routes need beside their context. */
export interface Resource {
  /** Below each project. */
  readonly routes: readonly ProjectRoutes[];
  /** What only pages of the console read. */
  readonly pages?: readonly ProjectRoutes[];
  /** Its operations that jobs carry out. */
  readonly jobs?: readonly JobOperation[];
  /** What the audit trail calls its operations that change something, by method and path below the project. */
  readonly actions?: Readonly<Record<string, string>>;
  readonly errorOf?: ErrorOf;
  /** Ends what its requests wait for, before the application closes: that could take longer than a shutdown may. */
  readonly interrupt?: () => void;
}
