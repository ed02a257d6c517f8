import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { completeDocument, documentTags } from './complete_document.ts';
import { outgoingMessages } from './outgoing_messages.ts';

/** How the OpenAPI document is made from the schemas of the routes. */
export const documentOptions: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: '3.1.0',
    info: {
      title: 'exportd',
      version: '1',
      description:
        'Batch exports of events and persons to object storage, dashboards and queries. Each path of a project exists ' +
        'below `/api/projects/{project_id}` and `/api/environments/{project_id}`, with or without a trailing slash.',
    },
    components: { securitySchemes: { personalApiKey: { type: 'http', scheme: 'bearer' } } },
    security: [{ personalApiKey: [] }],
    tags: documentTags,
    webhooks: outgoingMessages,
  },
  transform: jsonSchemaTransform,
  transformObject: (document) => completeDocument(jsonSchemaTransformObject(document)),
};
