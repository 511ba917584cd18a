-- Vectors of any length, two bytes a number: what is nearest is the same, in half the space.
ALTER TABLE unit_vector ALTER COLUMN embedding TYPE HALFVEC USING embedding::halfvec;
