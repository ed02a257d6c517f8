import { findProjects } from '../accounts.ts';
import { notFound } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { type ProjectRoutes, readsExports, teamOf } from '../command_service.ts';
import { offsetPage } from '../paging.ts';
import { errorResponses, listQuery, pageOf } from '../schemas.ts';
import { listProofKeys, readProof, signProof } from './proof.ts';
import { proofKeySchema, proofPath, proofQuery, signedProofSchema } from './schema.ts';

/** Prove what was exported in a month, and list the public keys that proofs are verified with. */
export const proofRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/batch_exports/:batch_export_id/proof',
    {
      ...readsExports,
      schema: {
        summary: 'Prove month of a batch export',
        description:
          'A signed statement of the rows in the source and in the files, their fingerprints, verifications, what is not exported, and who allowed which rows to go. `exportd proof verify` checks it without a server.',
        params: proofPath,
        querystring: proofQuery,
        response: { 200: signedProofSchema, ...errorResponses },
      },
    },
    async (request) => {
      const found = await requireBatchExport(pool, teamOf(request), request.params.batch_export_id);
      const [project] = await findProjects(pool, [teamOf(request)]);
      if (!project) throw notFound();
      const { id, name } = project;
      return signProof(pool, settings, await readProof(pool, found, { id, name }, request.query.month));
    },
  );

  app.get(
    '/proof_keys',
    {
      ...readsExports,
      schema: {
        summary: 'List proof keys',
        description: 'Also of key rings that were replaced. Give them to those who receive proofs.',
        querystring: listQuery,
        response: { 200: pageOf(proofKeySchema), ...errorResponses },
      },
    },
    async (request) => {
      const { limit, offset } = request.query;
      const keys = await listProofKeys(pool, settings);
      return offsetPage(request, settings, request.query, {
        count: keys.length,
        results: keys.slice(offset, offset + limit),
      });
    },
  );
};
