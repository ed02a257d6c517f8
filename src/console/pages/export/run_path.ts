import type { RunResponse } from '../../../http/runs/schema.ts';
import { paths } from '../../router/paths.ts';

/** The address of what is known of a run. */
export const runPath = ({ batch_export, id }: Pick<RunResponse, 'batch_export' | 'id'>): string =>
  `${paths.export(batch_export)}?tab=runs&run=${id}`;
