import { readStandings } from '../../../projections/export_conditions.ts';
import { backfillsPath } from '../../backfills/schema.ts';
import { readExportsOfBucket, requireBatchExport } from '../../batch_exports/read_model.ts';
import { readsExports, teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { errorResponses } from '../../schemas.ts';
import { sameTroubleSchema } from './schema.ts';

/** The exports of a response, which are cured with one click. */
const maxSameTrouble = 100;

/** Lists the exports to the same bucket whose condition has the same cause. */
export const sameTroubleRoutes: ProjectRoutes = (app, { pool }) => {
  app.get(
    '/console/batch_exports/:batch_export_id/same_trouble',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        response: { 200: sameTroubleSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id: id } = request.params;
      const others = await readExportsOfBucket(pool, await requireBatchExport(pool, teamOf(request), id));
      const shown = others.slice(0, maxSameTrouble);
      const ids = [id, ...shown.map((other) => other.id)];
      const standings = await readStandings(pool, ids, () => undefined);
      const cause = standings.get(id)?.condition.cause;
      return {
        exports: shown.flatMap((other) => {
          const condition = standings.get(other.id)?.condition;
          return condition !== undefined && condition.cause === cause ? [{ ...other, condition }] : [];
        }),
      };
    },
  );
};
