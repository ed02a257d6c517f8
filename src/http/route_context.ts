import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { KeyRing } from '../config/key_ring.ts';
import type { EncoderPool } from '../encoding/encoder.ts';
import type { DryRunService } from './backfills/dry_run.ts';
import type { CommandService } from './command_service.ts';
import type { JobService } from './jobs/answer_job.ts';
import type { RequestShares } from './request_shares.ts';
import type { ExportLink, RunLink } from './runs/read_model.ts';

/** The application, with request and response types derived from their schemas. */
export type HttpApp = FastifyInstance<
  Server,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

/** What the routes of a project use. */
export interface RouteContext extends DryRunService, JobService {
  readonly keyRing: KeyRing;
  readonly commandService: CommandService;
  readonly runLink: RunLink;
  readonly exportLink: ExportLink;
  /** Encodes rows of previews in a thread. */
  readonly encoders: EncoderPool;
  readonly shares: RequestShares;
}

/** Adds routes below `/api/<root>/:project_id`. */
export type ProjectRoutes = (app: HttpApp, context: RouteContext) => void;
