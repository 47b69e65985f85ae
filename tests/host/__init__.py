"""An application that has cpstore in it: FastAPI, SQLAlchemy models, an Alembic history, and a graph.

It knows nothing of tests. Its tables and cpstore's are in one database, behind one engine.
"""
